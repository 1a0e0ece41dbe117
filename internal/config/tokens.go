package config

import (
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// rejoin puts plain texts together that the scanner cuts at a colon inside of braces, as in
// {api_keys: [env:NAME], models: [llama3:8b]}. In YAML a colon ends a plain key only when
// white space or a bracket follows it; the scanner would read {env: NAME}.
func rejoin(tokens token.Tokens) token.Tokens {
	var joined token.Tokens
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		if i+2 < len(tokens) && touches(t, tokens[i+1], tokens[i+2]) {
			value := tokens[i+2]
			t = token.String(t.Value+":"+value.Value, t.Origin+":"+value.Origin, t.Position)
			i += 2
		} else if joined == nil {
			continue // nothing to repair so far
		}
		if joined == nil {
			joined = make(token.Tokens, 0, len(tokens))
			for _, before := range tokens[:i-2] {
				joined.Add(before)
			}
		}
		joined.Add(t)
	}
	if joined == nil {
		return tokens
	}
	return joined
}

// touches tells whether three tokens are a plain text, a colon and a plain text without
// space between them.
func touches(key, colon, value *token.Token) bool {
	return colon.Type == token.MappingValueType && plainText(key) && plainText(value) &&
		key.Position.Line == colon.Position.Line && value.Position.Line == colon.Position.Line &&
		key.Position.Column+utf8.RuneCountInString(key.Value) == colon.Position.Column &&
		value.Position.Column == colon.Position.Column+1
}

func plainText(t *token.Token) bool {
	switch t.Type {
	case token.StringType, token.IntegerType, token.FloatType, token.BoolType, token.NullType,
		token.BinaryIntegerType, token.OctetIntegerType, token.HexIntegerType, token.InfinityType, token.NanType:
		return t.Value != ""
	}
	return false
}

// strayAlias finds an alias whose name no anchor before it has.
func strayAlias(tokens token.Tokens) *token.Token {
	var anchors map[string]bool
	for i, t := range tokens {
		if i+1 == len(tokens) {
			break
		}
		switch name := tokens[i+1].Value; t.Type {
		case token.AnchorType:
			if anchors == nil {
				anchors = map[string]bool{}
			}
			anchors[name] = true
		case token.AliasType:
			if !anchors[name] {
				return t
			}
		}
	}
	return nil
}
