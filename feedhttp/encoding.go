package feedhttp

import (
	"compress/gzip"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// codedFrom is how large an answer must be to be compressed: below it the header costs as
	// much as is saved, and a packet is one packet.
	codedFrom = 1400
	// zstdWindow is how far back a compressor looks, and what a receiver has to keep. Browsers
	// take up to maxWindow (RFC 9659); rows resemble those near them, so that more gains little.
	zstdWindow = 512 << 10
	maxWindow  = 8 << 20
)

// coding is a content coding that answers may be sent in.
type coding struct {
	name string
	used sync.Pool // compressors that were used before
}

// compressor is what all codings' compressors have in common.
type compressor interface {
	io.WriteCloser
	Reset(io.Writer)
}

// gzipped takes some 800 KiB for a compressor.
var gzipped = &coding{name: "gzip", used: sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // a level that there is
	return z
}}}

// zstandard takes some 2 MiB for a compressor; one without goroutines, as it is fed part by part.
var zstandard = &coding{name: "zstd", used: sync.Pool{New: func() any {
	z, err := zstd.NewWriter(io.Discard, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(zstdWindow))
	if err != nil {
		panic(err) // options that there are
	}
	return z
}}}

// codingFor is the coding that an answer to the request may be sent in, or nil; the header
// says that it depends on the request.
func (h *Handler) codingFor(w http.ResponseWriter, r *http.Request) *coding {
	if h.cfg.NoCompression {
		return nil
	}
	w.Header().Set("Vary", varyCoded)
	return wantedCoding(r.Header.Values("Accept-Encoding"))
}

// wantedCoding reads Accept-Encoding (RFC 9110, section 12.5.3): the coding with the highest
// quality, of equals zstd, and none where nothing done to the answer is wanted more. zstd goes by its
// name alone: who writes * may be older than it. Without a header nothing is compressed: who does
// not ask may not be able to.
func wantedCoding(accept []string) *coding {
	quality := map[string]float64{}
	for element := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, params, err := mime.ParseMediaType(element)
		if err != nil {
			continue // what cannot be understood asks for nothing
		}
		q := 1.0
		if text, given := params["q"]; given {
			if q, err = strconv.ParseFloat(text, 64); err != nil || !(q >= 0 && q <= 1) {
				continue
			}
		}
		if name == "x-gzip" {
			name = "gzip"
		}
		quality[name] = q
	}
	if _, named := quality["gzip"]; !named {
		quality["gzip"] = quality["*"]
	}
	best, least := (*coding)(nil), quality["identity"]
	for _, c := range []*coding{gzipped, zstandard} {
		if q := quality[c.name]; q > 0 && q >= least {
			best, least = c, q
		}
	}
	return best
}

// coded is an answer's parts, compressed. Its parts are numbered by itself: how far the
// answer was made it knows.
type coded struct {
	by    *coding
	parts part
	next  int
	plain []byte
	z     compressor
	out   []byte
}

// Write implements io.Writer for what is compressed.
func (z *coded) Write(p []byte) (int, error) {
	z.out = append(z.out, p...)
	return len(p), nil
}

// newCoded begins with what was made of the answer already; next is where its rest begins.
func newCoded(by *coding, parts part, made []byte, next int) *coded {
	z := &coded{by: by, parts: parts, next: next, plain: made, z: by.used.Get().(compressor)}
	z.z.Reset(z)
	return z
}

// part is the next part: at least size bytes, but for the last one, behind which stands -1.
func (z *coded) part(dst []byte, _, size int) ([]byte, int) {
	z.out = dst
	for {
		_, _ = z.z.Write(z.plain) // to our own Write, which does not fail
		if z.next < 0 {
			_ = z.z.Close()
			z.z.Reset(io.Discard) // lest it keep the page until it is used again
			z.by.used.Put(z.z)
			return z.out, -1
		}
		z.plain, z.next = z.parts(z.plain[:0], z.next, writeChunk)
		if len(z.out) >= size {
			return z.out, 1
		}
	}
}
