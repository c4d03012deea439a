package cli

import (
	"context"
	"errors"
	"fmt"
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
			attributes := attributesOf(e.Feed, e.Consumer, e.Shard, e.ShardCount)
			if e.Key != "" {
				attributes = append(attributes, "key", e.Key)
			}
			if e.Position != "" {
				attributes = append(attributes, "position", e.Position)
			}
			which := code(e.Err)
			if e.Attempt > 0 {
				attributes = append(attributes, "attempt", e.Attempt)
			} else {
				which = e.Err.Error() // no attempt failed: each problem is another one
			}
			text := "a publisher fails, and tries again"
			switch {
			case e.Consumer != "" && e.Attempt == 0:
				text = "a consumer has a problem"
			case e.Consumer != "":
				text = "a consumer fails, and tries again"
			case e.Feed == "":
				text = "a member of a group fails, and tries again"
			case e.Attempt == 0:
				text = "a feed has a problem"
			}
			a.Repeated(log, failing(e.Feed, e.Consumer, e.Shard)+which, text, append(attributes, "error", e.Err)...)
		},
		Recovered: func(e rowfeed.RecoveredEvent) {
			if a.repeated.over(failing(e.Feed, e.Consumer, e.Shard)) {
				text := "a publisher works again"
				if e.Consumer != "" {
					text = "a consumer works again"
				}
				about := attributesOf(e.Feed, e.Consumer, e.Shard, e.ShardCount)
				log.Info(text, append(about, "attempts", e.Attempts)...)
			}
		},
		SetAside: func(e rowfeed.SetAsideEvent) {
			a.Repeated(log, fmt.Sprintf("aside %q %q %d", e.Feed, e.Consumer, e.Shard),
				"an entry is set aside as a dead letter",
				append(attributesOf(e.Feed, e.Consumer, e.Shard, e.ShardCount), "key", e.Key, "position", e.Position,
					"attempts", e.Attempts, "error", e.Err)...)
		},
	}
}

// failing begins the keys of messages about one publisher, or about one shard of a consumer.
func failing(feed, consumer string, shard int) string {
	return fmt.Sprintf("%q %q %d ", feed, consumer, shard)
}

func attributesOf(feed, consumer string, shard, shardCount int) []any {
	attributes := []any{"feed", feed}
	if consumer != "" {
		attributes = append(attributes, "consumer", consumer)
	}
	if shardCount > 1 {
		attributes = append(attributes, "shard", shard, "shard_count", shardCount)
	}
	return attributes
}

// code returns the code of an error.
func code(err error) string {
	var known *rowfeed.Error
	if errors.As(err, &known) {
		return string(known.Code)
	}
	return ""
}

// Repeated logs a warning at once. Of warnings with the same key, it then logs one at the end of each minute: the
// latest, with the number of the others.
func (a *App) Repeated(log *slog.Logger, key, text string, attributes ...any) {
	a.repeated.add(key, func(omitted int) {
		if omitted > 0 {
			attributes = append(attributes, "omitted", omitted)
		}
		log.Warn(text, attributes...)
	})
}
