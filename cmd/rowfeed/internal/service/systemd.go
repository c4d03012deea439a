package service

import (
	"context"
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notify tells systemd that the server accepts requests, and, when ctx ends, that the server is stopping. It does
// nothing unless systemd started this process with Type=notify.
func notify(ctx context.Context, log *slog.Logger) {
	tell := func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Warn("systemd could not be notified", "state", state, "error", err)
		}
	}
	tell(daemon.SdNotifyReady)
	context.AfterFunc(ctx, func() { tell(daemon.SdNotifyStopping) })
}
