package console_test

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"
)

// startBrowser starts Chromium. Where the machine is busy it breaks off at its start now and then,
// before it has seen a page: it is started again.
func startBrowser(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	var err error
	for range 3 {
		allocator, end := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true),
			chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(waitTimeout))...)
		t.Cleanup(end)
		browser, stop := chromedp.NewContext(allocator)
		t.Cleanup(stop)
		if err = chromedp.Do(browser); err == nil {
			return browser
		}
	}
	t.Fatalf("%v: run scripts/setup.sh, which installs chromium", err)
	return nil
}
