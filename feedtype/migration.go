package feedtype

// MigrationStatus is one version of rowfeed's own tables.
type MigrationStatus struct {
	Version int    `json:"version"`
	Title   string `json:"title"`
	Applied bool   `json:"applied"`
}
