package feedhttp

import (
	"sync"

	"github.com/rowfeed/rowfeed/feedtype"
)

const (
	// sharedSize is the maximum size of an encoded page that is kept for the requests that share the page.
	sharedSize = 256 << 10
	// keepBuffer is the maximum size of a buffer that is kept for later answers. Otherwise one large row would make
	// all buffers large.
	keepBuffer = 4 * writeChunk
)

// buffers has buffers for parts of answers.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, writeChunk+writeChunk/4); return &b }}

func getBuffer() []byte { return (*buffers.Get().(*[]byte))[:0] }

func putBuffer(b []byte) {
	if cap(b) <= keepBuffer {
		buffers.Put(&b)
	}
}

// part appends a part of an answer to dst, as [feedtype.Page.AppendJSONPart] does.
type part func(dst []byte, i, size int) (_ []byte, next int)

// answerForm is a way to encode a page.
type answerForm struct {
	mediaType string
	name      string // identifies the encoding: the same page and name give the same bytes
	parts     part
}

// objectParts encodes a page as one JSON object on one line.
func objectParts(page feedtype.Page, feed string) part {
	return func(dst []byte, i, size int) ([]byte, int) {
		if dst, i = page.AppendJSONPart(dst, feed, i, size); i < 0 {
			dst = append(dst, '\n')
		}
		return dst, i
	}
}
