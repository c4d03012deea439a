package feedhttp

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/rowfeed/rowfeed/feedtype"
)

// acceptEncoding returns the Accept-Encoding of a request. It asks for no compression if the server is on this machine,
// where compression saves nothing, or if the transport has compression disabled.
func acceptEncoding(client *http.Client, host string) string {
	ip, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && ip.Unmap().IsLoopback() {
		return "identity"
	}
	if t, ok := client.Transport.(*http.Transport); ok && t.DisableCompression {
		return "identity"
	}
	return "zstd, gzip"
}

// inflaters has zstd decoders for reuse. The window limits the memory that each of them keeps.
var inflaters = sync.Pool{New: func() any {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		panic(err) // the options are valid
	}
	return z
}}

// readBody reads and decompresses the body of an answer. MaxBytes limits the decompressed size.
func (c *Client) readBody(resp *http.Response) ([]byte, error) {
	body := io.Reader(resp.Body)
	switch coding := resp.Header.Get("Content-Encoding"); coding {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = z
	case "zstd":
		z := inflaters.Get().(*zstd.Decoder)
		defer func() {
			_ = z.Reset(nil) // so that the decoder does not keep the answer
			inflaters.Put(z)
		}()
		if err := z.Reset(body); err != nil {
			return nil, err
		}
		body = z
	default:
		return nil, c.notRowfeed(fmt.Sprintf("the answer has a Content-Encoding that was not requested: %q", coding),
			nil)
	}
	return c.readBounded(body)
}

// readBounded reads everything, up to MaxBytes.
func (c *Client) readBounded(r io.Reader) ([]byte, error) {
	limit := c.MaxBytes
	if limit <= 0 {
		limit = defaultMaxBytes
	}
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return nil, c.notRowfeed("the answer is compressed with a window of more than 8 MiB", err)
	}
	if err == nil && int64(len(body)) > limit {
		err = c.failure(feedtype.Failed, fmt.Sprintf("the answer has more than %d bytes", limit),
			"request fewer entries (limit), or raise MaxBytes", nil)
	}
	return body, err
}
