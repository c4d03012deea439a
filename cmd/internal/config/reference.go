package config

import (
	"cmp"
	"fmt"
	"strings"
)

// Reference returns a page in Markdown about every key, generated from the schema.
func Reference() (string, error) {
	top, err := root()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, `# %s

%s

`+"`rowfeed config check`"+
		` checks a file, and names the lines with errors. This page is generated from the
JSON schema (`+"`rowfeed config schema`"+
		`). rowfeed compares the file with the schema whenever it reads the file. Editors
with YAML's language server complete keys if the file names the schema:

`+"```yaml"+`
# rowfeed.yaml
# yaml-language-server: $schema=./rowfeed.schema.json
db: postgres://rowfeed@localhost/shop
relays:
  - feed: orders
    to: https://example.com/hook
    secret: [env:HOOK_SECRET]
`+"```"+`

An empty key counts as missing. `, top.Title, top.Description)
	fmt.Fprintf(&out, "Secrets need not be in the file: "+
		"if a key allows it, env:NAME is the value of an environment variable, and file:PATH the content of a file.\n")
	writeKeys(&out, top, top, "", 2)
	return out.String(), nil
}

// writeKeys writes a table of an object's keys, and below it those of the objects in it.
func writeKeys(out *strings.Builder, top, object *property, path string, depth int) {
	fmt.Fprintf(out, "\n| key | value | default | |\n|---|---|---|---|\n")
	for _, p := range object.Properties {
		takes, text := p.expects(), p.Description
		otherwise := string(p.Default)
		var examples []string
		for _, example := range p.Examples {
			examples = append(examples, "`"+string(example)+"`")
		}
		if len(examples) > 0 {
			text += " For example " + strings.Join(examples, ", ") + "."
		}
		required := false
		for _, name := range object.Required {
			required = required || name == p.name
		}
		if otherwise = cmp.Or(otherwise, "–"); otherwise != "–" {
			otherwise = "`" + otherwise + "`"
		} else if required {
			otherwise = "must be given"
		}
		fmt.Fprintf(out, "| `%s%s` | %s | %s | %s |\n", path, p.name, takes, otherwise,
			strings.ReplaceAll(text, "|", "\\|"))
	}
	for _, p := range object.Properties {
		inner, at := p.resolved(top), path+p.name+"."
		if inner.Items != nil {
			inner, at = inner.Items.resolved(top), path+p.name+"[]."
		}
		if len(inner.Properties) == 0 {
			continue
		}
		fmt.Fprintf(out, "\n%s `%s`\n\n%s\n", strings.Repeat("#", depth), strings.TrimSuffix(at, "."),
			inner.Description)
		writeKeys(out, top, inner, at, depth+1)
	}
}
