package feedhttp

import (
	"compress/gzip"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// gzipFrom is how large an answer must be to be compressed: below it the header costs as
// much as is saved, and a packet is one packet.
const gzipFrom = 1400

// gzips are compressors that were used before; one takes some 800 KiB.
var gzips = sync.Pool{New: func() any { z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed); return z }}

// compressed tells whether an answer to the request may be compressed, and says in the
// header that it depends on the request.
func (h *Handler) compressed(w http.ResponseWriter, r *http.Request) bool {
	if h.cfg.NoCompression {
		return false
	}
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	return takesGzip(r.Header.Values("Accept-Encoding"))
}

// takesGzip reads Accept-Encoding (RFC 9110, section 12.5.3): gzip by its name, else by *, and
// not where something else, or nothing done to it, is wanted more. Without a header nothing
// is compressed: who does not ask may not be able to.
func takesGzip(accept []string) bool {
	quality := map[string]float64{}
	for element := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		coding, params, err := mime.ParseMediaType(element)
		if err != nil {
			continue // what cannot be understood asks for nothing
		}
		q := 1.0
		if text, given := params["q"]; given {
			if q, err = strconv.ParseFloat(text, 64); err != nil || !(q >= 0 && q <= 1) {
				continue
			}
		}
		if coding == "x-gzip" {
			coding = "gzip"
		}
		quality[coding] = q
	}
	wanted := func(coding string) float64 {
		if q, named := quality[coding]; named {
			return q
		}
		return quality["*"]
	}
	return wanted("gzip") > 0 && wanted("gzip") >= quality["identity"]
}

// zipped is an answer's parts, compressed. Its parts are numbered by itself: how far the
// answer was made it knows.
type zipped struct {
	parts part
	next  int
	plain []byte
	z     *gzip.Writer
	out   []byte
}

// Write implements io.Writer for what is compressed.
func (z *zipped) Write(p []byte) (int, error) {
	z.out = append(z.out, p...)
	return len(p), nil
}

// newZipped begins with what was made of the answer already; next is where its rest begins.
func newZipped(parts part, made []byte, next int) *zipped {
	z := &zipped{parts: parts, next: next, plain: made, z: gzips.Get().(*gzip.Writer)}
	z.z.Reset(z)
	return z
}

// part is the next part: at least size bytes, but for the last one, behind which stands -1.
func (z *zipped) part(dst []byte, _, size int) ([]byte, int) {
	z.out = dst
	for {
		_, _ = z.z.Write(z.plain) // to our own Write, which does not fail
		if z.next < 0 {
			_ = z.z.Close()
			z.z.Reset(io.Discard) // lest it keep the page until it is used again
			gzips.Put(z.z)
			return z.out, -1
		}
		z.plain, z.next = z.parts(z.plain[:0], z.next, writeChunk)
		if len(z.out) >= size {
			return z.out, 1
		}
	}
}
