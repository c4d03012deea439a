package console

import (
	"embed"
	"html/template"
	"strings"
	"sync"
)

//go:embed assets
var assets embed.FS

type file struct {
	mediaType, tag string
	content        []byte
}

var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// templates returns a template for each page: the layout, the shared parts and the page's main part. They are parsed at
// the first use, so that commands without a console start sooner.
var templates = sync.OnceValue(func() map[string]*template.Template {
	all := make(map[string]*template.Template)
	shared := template.Must(template.New("").Funcs(functions).ParseFS(assets, "assets/layout.html",
		"assets/parts.html"))
	names, _ := assets.ReadDir("assets")
	for _, e := range names {
		name, ok := strings.CutSuffix(e.Name(), ".html")
		if ok && name != "layout" && name != "parts" {
			all[name] = template.Must(template.Must(shared.Clone()).ParseFS(assets, "assets/"+e.Name()))
		}
	}
	return all
})
