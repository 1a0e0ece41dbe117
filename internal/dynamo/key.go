package dynamo

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

const (
	// maxKey is far below DynamoDB's limits (2048 bytes HASH, 1024 RANGE), so that a name
	// from a client cannot make an item large either.
	maxKey    = 256
	hashedKey = "sha256:"

	aliasID    = "response:" // ids of the state table, by what they name
	documentID = "document:"
)

// keyText is the text that stands for name in a key. Names that DynamoDB refuses or changes
// (empty, too long, no UTF-8) are hashed, and so are those that look hashed: no two names
// share a text.
func keyText(name string) string {
	if name != "" && len(name) <= maxKey && utf8.ValidString(name) && !strings.HasPrefix(name, hashedKey) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hashedKey + hex.EncodeToString(sum[:])
}

// opening is the part of a hashed name that is kept for people to read.
func opening(name string) string {
	name = name[:min(len(name), maxKey)]
	for len(name) > 0 && !utf8.ValidString(name) {
		name = name[:len(name)-1]
	}
	return name
}
