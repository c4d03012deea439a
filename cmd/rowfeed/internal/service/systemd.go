package service

import (
	"context"
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notify tells systemd, where it has started this process and wants to know (Type=notify),
// that requests are taken, and then that they no longer are.
func notify(ctx context.Context, log *slog.Logger) {
	tell := func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Warn("systemd was not told", "state", state, "error", err)
		}
	}
	tell(daemon.SdNotifyReady)
	context.AfterFunc(ctx, func() { tell(daemon.SdNotifyStopping) })
}
