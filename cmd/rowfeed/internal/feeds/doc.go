// Package feeds has the commands that make, change and remove feeds and rowfeed's own tables: init, migrate and feed;
// and those that publish rows again or hide them: republish and unpublish.
package feeds
