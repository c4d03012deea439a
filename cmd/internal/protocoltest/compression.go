package protocoltest

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest zstd window that browsers accept.
const maxWindow = 8 << 20

// decompressed returns the body without its compression.
func decompressed(a *response) ([]byte, error) {
	switch coding := a.header.Get("Content-Encoding"); coding {
	case "":
		return a.body, nil
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(a.body))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(z, maxBody))
	case "zstd":
		z, err := zstd.NewReader(bytes.NewReader(a.body), zstd.WithDecoderMaxWindow(maxWindow),
			zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return io.ReadAll(io.LimitReader(z, maxBody))
	default:
		return nil, fmt.Errorf("Content-Encoding: %s", coding)
	}
}

// sameCompressed compares a page with the same page in a coding. The server may answer without compression, but in no
// other coding.
func (f *feed) sameCompressed(ctx context.Context, accept, allowed string) error {
	var plain []byte
	for _, coding := range []string{"identity", accept, "identity"} {
		a, err := f.ask(ctx, http.MethodGet, f.fetchPath(), f.with("limit", "500"), "Accept-Encoding", coding)
		if err != nil {
			return err
		}
		body, err := decompressed(a)
		if err != nil {
			return err
		}
		got := a.header.Get("Content-Encoding")
		switch {
		case coding == "identity" && got != "", got != "" && got != allowed:
			return fmt.Errorf("Accept-Encoding: %s was answered with %s", coding, got)
		case coding != "identity" && got == "":
			if allowed != "" && len(body) > 64<<10 {
				return untried("pages are not compressed")
			}
		}
		if plain != nil && !bytes.Equal(plain, body) {
			if coding == "identity" {
				return untried("the page changes all the time")
			}
			again, err := f.ask(ctx, http.MethodGet, f.fetchPath(), f.with("limit", "500"), "Accept-Encoding",
				"identity")
			if err != nil {
				return err
			}
			if bytes.Equal(again.body, plain) {
				return fmt.Errorf("in %s it is another page", got)
			}
			return untried("the page changes all the time")
		}
		plain = body
	}
	return nil
}

func compressionChecks() []check {
	return []check{
		{"10.1", "A page MUST NOT be compressed if the request does not ask for compression.",
			func(ctx context.Context, f *feed) error {
				return f.sameCompressed(ctx, "identity", "")
			}},
		{"10.2", "A page in gzip MUST be the same page.", func(ctx context.Context, f *feed) error {
			return f.sameCompressed(ctx, "gzip", "gzip")
		}},
		{"10.3", "A page in zstd MUST be the same page, with a window of at most 8 MiB.",
			func(ctx context.Context, f *feed) error {
				return f.sameCompressed(ctx, "zstd", "zstd")
			}},
	}
}
