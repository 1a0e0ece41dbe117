package provider

import "bytes"

// runLength is how many characters of a key in a row count as showing it.
const runLength = 8

var redacted = []byte("[redacted]")

// Redact replaces every run of text in b that shares 8 or more characters with one of the
// keys by "[redacted]". It returns b itself when there is none. Of a key shorter than 8
// characters whole occurrences are replaced.
func Redact(b []byte, keys []string) []byte {
	var first [256]bool // bytes with which a run can begin: most positions need no look-up
	runs := make(map[[runLength]byte]struct{})
	var short [][]byte
	for _, k := range keys {
		if k != "" && len(k) < runLength {
			short = append(short, []byte(k))
			first[k[0]] = true
		}
		for i := 0; i+runLength <= len(k); i++ {
			first[k[i]] = true
			runs[[runLength]byte([]byte(k[i:i+runLength]))] = struct{}{}
		}
	}
	shows := func(i int) int {
		if i+runLength <= len(b) {
			if _, ok := runs[[runLength]byte(b[i:i+runLength])]; ok {
				return runLength
			}
		}
		n := 0
		for _, k := range short {
			if len(k) > n && bytes.HasPrefix(b[i:], k) {
				n = len(k)
			}
		}
		return n
	}

	var out []byte
	copied := 0 // of b, into out
	for i := 0; i < len(b); i++ {
		if !first[b[i]] {
			continue
		}
		n := shows(i)
		if n == 0 {
			continue
		}
		// Runs that overlap or touch are one.
		end := i + n
		for j := i + 1; j <= end && j < len(b); j++ {
			if first[b[j]] {
				end = max(end, j+shows(j))
			}
		}
		out = append(append(out, b[copied:i]...), redacted...)
		copied = end
		i = end - 1
	}
	if out == nil {
		return b
	}
	return append(out, b[copied:]...)
}
