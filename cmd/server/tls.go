package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
)

// TLS has the certificate of a server, and whether clients need one. The files are read again when they have changed;
// existing connections are not affected. The minimum version is TLS 1.2.
type TLS struct {
	// Cert and Key are PEM files: the certificate with its chain, and its private key.
	Cert, Key string
	// ClientCA is a PEM file of certificate authorities. If it is set, a client needs a certificate of one of them.
	// Access still decides what the client may do.
	ClientCA string
	// Reload, if set, makes the server read the files again for each value, whether they look changed or not.
	Reload <-chan struct{}
}

// certificates are the files of a TLS, as last read.
type certificates struct {
	TLS
	log *slog.Logger

	mu     sync.Mutex
	seen   [3]stamp // of the files, when last read
	config *tls.Config
}

// stamp shows whether a file has changed.
type stamp struct {
	modified time.Time
	size     int64
}

// readCertificates reads the files, which must be valid.
func readCertificates(t TLS, log *slog.Logger) (*certificates, error) {
	c := &certificates{TLS: t, log: log}
	if (t.Cert == "") != (t.Key == "") || t.Cert == "" {
		return nil, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "tls-cert",
			Cause: "TLS: a certificate and its private key belong together",
			Next:  "give both, --tls-cert and --tls-key"}
	}
	c.seen = c.stamps()
	config, err := c.read()
	c.config = config
	return c, err
}

func (c *certificates) stamps() (all [3]stamp) {
	for i, path := range []string{c.Cert, c.Key, c.ClientCA} {
		if info, err := os.Stat(path); err == nil {
			all[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return all
}

// read makes a configuration of the files. A resumed session is verified like a new one: crypto/tls keeps the
// client's chain in the session, and verifies it with the current authorities.
func (c *certificates) read() (*tls.Config, error) {
	failed := func(param, path string, err error) error {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: param, Object: fmt.Sprintf("file %q", path),
			Cause: "TLS cannot use it", Err: err,
			Next: "give PEM files that belong together, and that this user may read"}
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, failed("tls-cert", c.Cert, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		NextProtos: []string{"h2", "http/1.1"}}
	if c.ClientCA == "" {
		return config, nil
	}
	authorities, err := os.ReadFile(c.ClientCA)
	if err != nil {
		return nil, failed("tls-client-ca", c.ClientCA, err)
	}
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, failed("tls-client-ca", c.ClientCA, nil) // otherwise every client would be refused without a reason
	}
	return config, nil
}

// current returns the configuration of a new connection, for tls.Config.GetConfigForClient.
func (c *certificates) current(*tls.ClientHelloInfo) (*tls.Config, error) {
	c.refresh(false)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.config, nil
}

// refresh reads the files again if they have changed. While they are invalid, for example between the writes of
// certificate and key, the previous configuration stays in use.
func (c *certificates) refresh(again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.stamps()
	if now == c.seen && !again {
		return
	}
	c.seen = now
	config, err := c.read()
	if err != nil {
		c.log.Error("the TLS files cannot be used, the server keeps the previous ones", "error", err)
		return
	}
	c.config = config
	c.log.Info("the TLS files were read again", "certificate_ends", config.Certificates[0].Leaf.NotAfter)
}

// follow reads the files again for each value of Reload, until ctx ends.
func (c *certificates) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-c.Reload:
			if !ok {
				return
			}
			c.refresh(true)
		}
	}
}
