package feedtype

// MigrationStatus is one version of rowfeed's own tables, applied or not.
type MigrationStatus struct {
	Version int    `json:"version"`
	Title   string `json:"title"`
	Applied bool   `json:"applied"`
}
