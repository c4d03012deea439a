package feedhttp

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// described is the part of the description that is compared with the handler.
type described struct {
	Paths      map[string]map[string]describedOperation
	Components struct {
		Parameters map[string]describedParameter
		Responses  map[string]describedResponse
	}
}

type describedOperation struct {
	Parameters []describedParameter
	Responses  map[string]describedResponse
}

type describedParameter struct {
	Ref      string `json:"$ref"`
	Name, In string
}

type describedResponse struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]any
}

// TestOpenAPIListsAllRoutesAndCodes: the description has all paths, parameters and formats of the handler, all codes of
// problems, and no others.
func TestOpenAPIListsAllRoutesAndCodes(t *testing.T) {
	var doc described
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	fetch := doc.Paths["/_feeds/fetch/{feed}"]["get"]
	for _, r := range NewHandler(nil, nil).routes {
		operations := doc.Paths[r.path]
		delete(doc.Paths, r.path)
		get, ok := operations["get"]
		if len(operations) != 1 || !ok {
			t.Errorf("%s: %+v", r.path, operations)
			continue
		}
		var parameters []string
		for _, p := range get.Parameters {
			if p.Ref != "" {
				p = doc.Components.Parameters[path.Base(p.Ref)]
			}
			if p.In == "query" {
				parameters = append(parameters, p.Name)
			}
		}
		if fmt.Sprint(
			slices.Sorted(slices.Values(parameters)),
		) != fmt.Sprint(slices.Sorted(slices.Values(r.parameters))) {
			t.Errorf("%s: takes %q, described are %q", r.path, r.parameters, parameters)
		}
		formats := slices.Sorted(maps.Keys(get.Responses["200"].Content))
		if fmt.Sprint(formats) != fmt.Sprint(slices.Sorted(slices.Values(r.formats))) {
			t.Errorf("%s: answers %q, described are %q", r.path, r.formats, formats)
		}
	}
	if len(doc.Paths) > 0 {
		t.Errorf("described, and not there: %q", slices.Collect(maps.Keys(doc.Paths)))
	}
	for code, kind := range kinds {
		response := fetch.Responses[strconv.Itoa(kind.status)]
		if response.Ref != "" {
			response = doc.Components.Responses[path.Base(response.Ref)]
		}
		if len(response.Content) == 0 || !strings.Contains(response.Description, "`"+string(code)+"`") {
			t.Errorf("%s is not described as a reason for %d", code, kind.status)
		}
	}
}
