package service

import (
	"context"
	"os/signal"
	"syscall"
)

// orHangup returns a context that also ends at SIGHUP, when the terminal is closed. The command can then release its
// leases, as with other signals. Under nohup, which ignores SIGHUP, the context does not end.
func orHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}
