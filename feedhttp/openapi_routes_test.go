package feedhttp

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestOpenAPIHasEverything: the description is valid, and has all paths, parameters and formats
// that the handler knows, all codes of problems, and no others.
func TestOpenAPIHasEverything(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	described := doc.Paths.Map()
	for _, r := range routes() {
		path := described[r.path]
		delete(described, r.path)
		if path == nil || len(path.Operations()) != 1 || path.Get == nil {
			t.Errorf("%s: %+v", r.path, path)
			continue
		}
		var parameters []string
		for _, p := range path.Get.Parameters {
			if p.Value.In == openapi3.ParameterInQuery {
				parameters = append(parameters, p.Value.Name)
			}
		}
		if fmt.Sprint(slices.Sorted(slices.Values(parameters))) != fmt.Sprint(slices.Sorted(slices.Values(r.parameters))) {
			t.Errorf("%s: takes %q, described are %q", r.path, r.parameters, parameters)
		}
		formats := slices.Sorted(maps.Keys(path.Get.Responses.Value("200").Value.Content))
		if fmt.Sprint(formats) != fmt.Sprint(slices.Sorted(slices.Values(r.formats))) {
			t.Errorf("%s: answers %q, described are %q", r.path, r.formats, formats)
		}
	}
	if len(described) > 0 {
		t.Errorf("described, and not there: %q", slices.Collect(maps.Keys(described)))
	}
	for code, kind := range kinds {
		found := false
		for _, r := range doc.Paths.Value("/_feeds/fetch/{feed}").Get.Responses.Map() {
			for range r.Value.Content {
				found = found || strings.Contains(*r.Value.Description, "`"+string(code)+"`") && doc.Paths.Value("/_feeds/fetch/{feed}").Get.Responses.Status(kind.status) == r
			}
		}
		if !found {
			t.Errorf("%s is not described as a reason for %d", code, kind.status)
		}
	}
}
