package service

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

type readyOptions struct {
	url      string
	timeout  time.Duration
	insecure bool
}

func newReady(a *cli.App) *cobra.Command {
	o := &readyOptions{}
	cmd := &cobra.Command{
		Use:   "ready [URL]",
		Short: "Ask a server whether it is ready; exit 1 if it is not",
		Long: `Asks /readyz of a server whether everything works that consumers need, and prints what
does not. The exit code is 1 if something does not work or the server does not answer.
Use it as the health check of a container, or in a script that waits for a server to
start; curl is not needed.

Without URL the command asks the server on this machine, at the address of rowfeed.yaml,
else http://127.0.0.1:8080. The certificate of such a server is usually made for another
name: --insecure skips its verification. The command cannot ask a server that wants
certificates of its clients (--tls-client-ca).`,
		Example: `  rowfeed ready
  rowfeed ready https://feeds.example.com --timeout 2s
  until rowfeed ready; do sleep 1; done`,
		Args: cli.Args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.url = args[0]
			}
			return o.run(cmd.Context(), a)
		},
	}
	cmd.Flags().DurationVar(&o.timeout, "timeout", 10*time.Second, "wait at most this long for an answer")
	cmd.Flags().BoolVar(&o.insecure, "insecure", false, "do not verify the server's certificate")
	return cmd
}

func (o *readyOptions) run(ctx context.Context, a *cli.App) error {
	if o.url == "" {
		file, err := config.Load(a.ConfigPath)
		if err != nil {
			return err
		}
		o.url = localURL(file)
	}
	u, err := cli.ServerURL(o.url)
	if err != nil {
		return err
	}
	fail := func(cause, next string) error {
		return &rowfeed.Error{Code: rowfeed.Unavailable, Object: "server " + u.Redacted(), Cause: cause, Next: next}
	}
	ctx, stop := context.WithTimeout(ctx, o.timeout)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("readyz").String(), nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: o.insecure},
		Proxy: http.ProxyFromEnvironment}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fail(fmt.Sprintf("it does not answer: %v", err), "check that the server runs, and read its log")
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return fail(fmt.Sprintf("it does not answer: %v", err), "read the log of the server")
	}
	var answer struct {
		Ready   bool     `json:"ready"`
		Reasons []string `json:"reasons"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fail(fmt.Sprintf("it answers %s, and is not a rowfeed server", response.Status), "check the URL")
	}
	if response.StatusCode != http.StatusOK || !answer.Ready {
		cause := "it is not ready"
		if len(answer.Reasons) > 0 {
			cause += ": " + strings.Join(answer.Reasons, "; ")
		}
		return fail(cause, "run `rowfeed status` on a machine that can reach the server's database")
	}
	return a.PrintLine("%s: ready", u.Redacted())
}

// localURL returns the URL of the server on this machine.
func localURL(file *config.File) string {
	listen, scheme := config.First(config.DefaultListen, file.Listen), "http"
	if file.TLSCert != nil && *file.TLSCert != "" {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return scheme + "://" + listen // the server refuses such an address, too
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
