package service

import (
	"testing"

	"github.com/rowfeed/rowfeed/cmd/internal/config"
)

func TestLocalURLFollowsConfiguration(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		file config.File
		want string
	}{
		{config.File{}, "http://127.0.0.1:8080"},
		{config.File{Listen: text(":9000")}, "http://127.0.0.1:9000"},
		{config.File{Listen: text("0.0.0.0:9000"), TLSCert: text("cert.pem")}, "https://127.0.0.1:9000"},
		{config.File{Listen: text("[::]:9000")}, "http://127.0.0.1:9000"},
		{config.File{Listen: text("10.0.0.1:9000")}, "http://10.0.0.1:9000"},
		{config.File{Listen: text("feeds:9000")}, "http://feeds:9000"},
	} {
		if got := localURL(&c.file); got != c.want {
			t.Errorf("%v: %s, want %s", c.file.Listen, got, c.want)
		}
	}
}
