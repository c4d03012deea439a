package protocoltest

import (
	"context"
	"fmt"
	"net/url"
	"slices"
)

func listingChecks() []check {
	return []check{
		{"1.1", "`GET /_feeds` MUST answer a JSON object whose member feeds lists the feeds, each with its name.",
			func(ctx context.Context, f *feed) error {
				names, err := f.feedNames(ctx)
				if err == nil && !slices.Contains(names, f.name) {
					err = fmt.Errorf("%q is not listed", f.name)
				}
				return err
			}},
		{"1.2", "`GET /_feeds/{feed}` MUST answer a JSON object with the feed's name, mode, generation, head, key, " +
			"columns, base64 and data_shards.", func(ctx context.Context, f *feed) error {
			members := map[string]any{}
			if err := f.getJSON(ctx, "/_feeds/"+url.PathEscape(f.name), nil, &members); err != nil {
				return err
			}
			for _, name := range []string{
				"name", "mode", "generation", "head", "key", "columns", "base64", "data_shards",
			} {
				if members[name] == nil {
					return fmt.Errorf("%s is missing", name)
				}
			}
			if members["name"] != f.name {
				return fmt.Errorf("the name is %v", members["name"])
			}
			return nil
		}},
	}
}
