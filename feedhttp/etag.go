package feedhttp

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
)

// DESIGN.md says what has a tag, and why the others have none.

// tagOf is the opaque part of the entity tag of an answer: the same bytes, with the same columns,
// and the same cursor where that stands in the header. No two forms have the same bytes.
func tagOf(header http.Header, body []byte) []byte {
	sum := sha256.New()
	// a hash takes everything
	_, _ = io.WriteString(sum, header.Get(columnsHeader)+"\n"+header.Get(cursorHeader)+"\n"+header.Get(moreHeader)+"\n")
	_, _ = sum.Write(body)
	return hex.AppendEncode(nil, sum.Sum(nil)[:16])
}

// tagged gives the answer its entity tag, a weak one where it is sent in another coding than
// it was hashed in. It answers true, and the request, where the client has it already.
func (h *Handler) tagged(w http.ResponseWriter, r *http.Request, opaque string, coded bool) (known bool) {
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

// noneMatch tells whether the tag is among those of an If-None-Match (RFC 9110, section
// 13.1.2), which compares weakly. What cannot be read ends the list.
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
