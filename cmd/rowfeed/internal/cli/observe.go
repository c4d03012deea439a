package cli

import (
	"context"
	"log/slog"

	"github.com/rowfeed/rowfeed"
)

// Observer returns an observer that logs the library's events, and counts them if the command has metrics.
func (a *App) Observer(log *slog.Logger) *rowfeed.Observer {
	if a.Metrics == nil {
		return a.logging(log)
	}
	return rowfeed.Observers(a.logging(log), a.Metrics.Observer())
}

func (a *App) logging(log *slog.Logger) *rowfeed.Observer {
	return &rowfeed.Observer{
		Published: func(e rowfeed.PublishEvent) {
			log.Debug("published", "feed", e.Feed, "changes", e.Changes, "keys", e.Keys, "head", e.Head, "took", e.Took)
			if a.OnPublish != nil {
				a.OnPublish(e)
			}
		},
		Fetched: func(e rowfeed.FetchEvent) {
			log.Debug("fetched", "feed", e.Feed, "entries", e.Entries, "vanished", e.Vanished, "took", e.Took)
		},
		Retried: func(e rowfeed.RetryEvent) {
			log.Debug("retried", "doing", e.Doing, "attempt", e.Attempt, "error", e.Err)
		},
		Lease: func(e rowfeed.LeaseEvent) {
			switch {
			case e.Mine:
				log.Info("this process publishes the feed", "feed", e.Feed, "epoch", e.Epoch)
			case e.Stalled:
				log.Warn("the process that publishes the feed left changes waiting; this process publishes meanwhile",
					"feed", e.Feed, "owner", e.Owner, "epoch", e.Epoch, "since", e.Since)
			default:
				log.Info("standing by: another process publishes",
					"feed", e.Feed, "owner", e.Owner, "epoch", e.Epoch, "since", e.Since)
			}
		},
		Job: func(e rowfeed.JobEvent) {
			switch {
			case e.Kind == rowfeed.JobStandsBy && e.Job < 0:
				log.Info("standing by: other processes hold all shards", "group", e.Group, "shard_count", e.Jobs)
				return
			case e.Kind == rowfeed.JobStandsBy:
				log.Info("waiting for a shard that another process holds",
					"group", e.Group, "shard", e.Job, "shard_count", e.Jobs, "owner", e.Owner, "epoch", e.Epoch)
				return
			}
			text := map[rowfeed.JobEventKind]string{
				rowfeed.JobBegun:      "this process has a shard",
				rowfeed.JobHandedOver: "a shard was handed over to another process",
				rowfeed.JobLost:       "a shard was lost: its lease has expired",
				rowfeed.JobEnded:      "this process has released a shard",
			}[e.Kind]
			level := slog.LevelInfo
			if e.Kind == rowfeed.JobLost {
				level = slog.LevelWarn
			}
			log.Log(context.Background(), level, text, "group", e.Group, "shard", e.Job, "shard_count", e.Jobs, "epoch",
				e.Epoch)
		},
		Trouble: func(e rowfeed.TroubleEvent) {
			attributes := []any{"feed", e.Feed, "error", e.Err}
			if e.Consumer != "" {
				attributes = append(attributes, "consumer", e.Consumer)
			}
			if e.ShardCount > 1 {
				attributes = append(attributes, "shard", e.Shard, "shard_count", e.ShardCount)
			}
			log.Warn("trouble", attributes...)
		},
	}
}
