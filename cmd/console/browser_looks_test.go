package console_test

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

var (
	update = flag.Bool("update", false, "take the pictures of docs/console anew")
	shots  = flag.String("shots", "", "a folder for pictures of every page, at every width, light and dark")
)

// fromEngines reads a file that scripts/setup.sh has put there.
func fromEngines(t *testing.T, name string) string {
	t.Helper()
	folder := os.Getenv("ROWFEED_ENGINES_DIR")
	if folder == "" {
		folder = filepath.Join("..", "..", ".engines")
	}
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatalf("%v: run scripts/setup.sh", err)
	}
	return string(data)
}

// views are the pages of which pictures are taken.
var views = []struct{ name, path string }{
	{"feeds", "/"}, {"feed", "/feeds/orders"}, {"feed-of-shards", "/feeds/ev"}, {"search", "/feeds/orders?key=2001"},
	{"entry", "/feeds/orders?entry=1204&position=1205"},
	{"consumers", "/consumers"}, {"consumer", "/consumers/mirror"}, {"leases", "/leases"},
	{"dead-letters", "/dead-letters"},
	{"blocked", "/blocked"}, {"audit", "/audit"},
	{"confirm", "/confirm?act=reset&consumer=billing&feed=orders"}, {"none", "/nope"},
}

// committed are the pictures in docs/console.
var committed = []string{"feeds-1600-light", "feed-1600-dark"}

// serious runs axe and returns the serious violations.
const serious = `axe.run({resultTypes: ["violations"]}).then((r) => r.violations
	.filter((v) => v.impact === "serious" || v.impact === "critical")
	.map((v) => v.id + ": " + v.nodes
		.map((n) => n.html.slice(0, 160) + " " + n.any.map((a) => a.message).join("; ")).join(" | ")))`

// tooWide tells whether the page scrolls sideways, or one of its tables.
const tooWide = `document.documentElement.scrollWidth > innerWidth ||
	[...document.querySelectorAll(".scroll")].some((e) => e.scrollWidth > e.clientWidth)`

// looks: neither a page nor a table scrolls sideways at any width. axe finds nothing serious, light and dark.
func looks(b *tab) {
	axe := fromEngines(b.t, "axe-core/axe.min.js")
	for _, view := range views {
		b.open(view.path)
		if view.path != "/nope" {
			b.wait(`document.readyState === "complete" && (!document.querySelector("[data-sample]") || ` +
				`document.querySelector("[data-plot=waiting] .line") !== null)`)
		}
		b.do(chromedp.Evaluate[chromedp.Void](axe))
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{390, 900, 1600} {
				b.do(colours(scheme), size(width))
				if wide, err := chromedp.Run(b, chromedp.Evaluate[bool](tooWide)); err != nil || wide {
					b.t.Errorf("%s scrolls sideways at %d", view.path, width)
				}
				b.picture(fmt.Sprintf("%s-%d-%s", view.name, width, scheme))
			}
			found, err := chromedp.Run(b, chromedp.Evaluate[[]string](serious, chromedp.EvalAwaitPromise))
			if err != nil {
				b.t.Fatal(err)
			}
			for _, violation := range found {
				b.t.Errorf("axe, %s, %s: %s", view.path, scheme, violation)
			}
		}
	}
	b.asked(404, "/nope")
}

// asked ignores errors of the browser about answers with this status at this path.
func (b *tab) asked(status int, path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trouble = slices.DeleteFunc(b.trouble, func(s string) bool {
		u, err := url.Parse(s[strings.LastIndex(s, " ")+1:])
		return err == nil && u.Path == path && strings.Contains(s, fmt.Sprintf("status of %d", status))
	})
}

// picture takes a picture if a flag asks for it.
func (b *tab) picture(name string) {
	b.t.Helper()
	var folders []string
	if *shots != "" {
		folders = append(folders, *shots)
	}
	if *update && slices.Contains(committed, name) {
		folders = append(folders, "../../docs/console")
	}
	if len(folders) == 0 {
		return
	}
	data, err := chromedp.Run(b, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, folder := range folders {
		if err := errors.Join(os.MkdirAll(folder, 0o755),
			os.WriteFile(filepath.Join(folder, name+".png"), data, 0o644)); err != nil {
			b.t.Fatal(err)
		}
	}
}
