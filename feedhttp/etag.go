package feedhttp

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
)

// tagOf returns the opaque part of an answer's entity tag. It is a hash of the body, of the columns, and of the
// cursor if that is in the header. Different formats never have the same body. DESIGN.md says which answers have a tag.
func tagOf(header http.Header, body []byte) []byte {
	sum := sha256.New() // its Write does not fail
	_, _ = io.WriteString(sum, header.Get(columnsHeader)+"\n"+header.Get(cursorHeader)+"\n"+header.Get(moreHeader)+"\n")
	_, _ = sum.Write(body)
	return hex.AppendEncode(nil, sum.Sum(nil)[:16])
}

// tagged sets the entity tag of the answer: a weak one if the answer is compressed, since the uncompressed body is
// hashed. If the client already has this answer, tagged answers the request with 304 and returns true.
func tagged(w http.ResponseWriter, r *http.Request, opaque string, coded bool) (known bool) {
	tag := `"` + opaque + `"`
	if coded {
		tag = "W/" + tag
	}
	w.Header().Set("ETag", tag)
	if !noneMatch(r.Header.Values("If-None-Match"), opaque) {
		return false
	}
	w.Header().Set("Cache-Control", revalidated)
	w.WriteHeader(http.StatusNotModified)
	return true
}

// noneMatch tells whether an If-None-Match header contains the tag (RFC 9110, section 13.1.2), which uses the weak
// comparison. Text that cannot be parsed ends the list.
func noneMatch(fields []string, opaque string) bool {
	for _, rest := range fields {
		if strings.TrimSpace(rest) == "*" {
			return true
		}
		for {
			rest = strings.TrimLeft(rest, ", \t")
			rest = strings.TrimPrefix(rest, "W/")
			tag, ok := strings.CutPrefix(rest, `"`)
			if !ok {
				break
			}
			if tag, rest, ok = strings.Cut(tag, `"`); !ok {
				break
			}
			if tag == opaque {
				return true
			}
		}
	}
	return false
}
