package feedhttp

import (
	"compress/gzip"
	"io"
	"mime"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// minCompressed is the minimum size of a compressed answer. Below it, the header costs as much as compression
	// saves, and the answer is one packet anyway.
	minCompressed = 1400
	// zstdWindow is how far back a compressor finds repetitions, and how much a receiver has to keep. Browsers
	// support up to maxWindow (RFC 9659). A larger window gains little: rows resemble those near them.
	zstdWindow = 512 << 10
	maxWindow  = 8 << 20
	// compressedAtOnce is how much of a page is compressed before its first byte is sent. A compressor needs more
	// memory than such a page, so it must not wait for a slow client.
	compressedAtOnce = 1 << 20
)

// coding is a content coding of answers.
type coding struct {
	name string
	idle sync.Pool // of compressors
	size int       // about how much memory a compressor needs
}

// memory returns the maximum memory to encode a page part by part. by may be nil.
func (by *coding) memory() int {
	if by == nil {
		return plainParts
	}
	return plainParts + compressedAtOnce + by.size
}

// compressor is the interface of the compressors of all codings.
type compressor interface {
	io.WriteCloser
	Reset(io.Writer)
}

var gzipped = &coding{name: "gzip", size: 800 << 10, idle: sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is valid
	return z
}}}

// The compressors of zstandard have no goroutines, because they get their input part
// by part.
var zstandard = &coding{name: "zstd", size: 2 << 20, idle: sync.Pool{New: func() any {
	z, err := zstd.NewWriter(io.Discard, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(zstdWindow))
	if err != nil {
		panic(err) // the options are valid
	}
	return z
}}}

// wantedCoding parses Accept-Encoding (RFC 9110, section 12.5.3). It returns the coding with the highest quality, and
// zstd before gzip if they are equal. It returns nil if identity has a higher quality, and without a header, because
// such a client may not be able to decompress. zstd must be named: a client that sends * may be older than zstd.
func wantedCoding(accept []string) *coding {
	quality := map[string]float64{}
	for element := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, params, err := mime.ParseMediaType(element)
		if err != nil {
			continue // ignore codings that cannot be parsed
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

// partCompressor compresses the parts of an answer. It keeps track of its position in the answer, so the numbers of
// the parts that it returns have no meaning.
type partCompressor struct {
	by    *coding
	parts part
	next  int
	plain []byte
	z     compressor
	read  int // bytes of the answer
	out   []byte
}

// Write implements io.Writer for the compressor's output.
func (z *partCompressor) Write(p []byte) (int, error) {
	z.out = append(z.out, p...)
	return len(p), nil
}

// newPartCompressor compresses made, the first part of an answer, and then the parts from next on.
func newPartCompressor(by *coding, parts part, made []byte, next int) *partCompressor {
	z := &partCompressor{by: by, parts: parts, next: next, plain: made, z: by.idle.Get().(compressor)}
	z.z.Reset(z)
	return z
}

// part appends the next part, of at least size bytes. After the last part, which may be smaller, it returns -1.
func (z *partCompressor) part(dst []byte, _, size int) ([]byte, int) {
	z.out = dst
	for {
		_, _ = z.z.Write(z.plain) // Write above does not fail
		z.read += len(z.plain)
		if z.next < 0 {
			_ = z.z.Close()
			z.z.Reset(io.Discard) // so that the compressor does not keep the page
			z.by.idle.Put(z.z)
			return z.out, -1
		}
		z.plain, z.next = z.parts(z.plain[:0], z.next, writeChunk)
		if len(z.out) >= size && z.read >= compressedAtOnce {
			return z.out, 1
		}
	}
}
