package service

import (
	"context"
	"os/signal"
	"syscall"
)

// orHangup is a context that ends with the terminal, too, as with other signals: so that leases are given back. Under
// nohup the terminal may go.
func orHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}
