package handlers

import "github.com/danielgtaylor/huma/v2"

// nullableObjects are the properties that hold an object or null. Huma has no tag for it, so the document is amended.
var nullableObjects = map[string][]string{
	"Run":          {"progress", "queue", "writeback"},
	"SchemaScores": {"val", "test"},
	"SplitScores":  {"confusion"},
}

func allowNullObjects(a huma.API) {
	schemas := a.OpenAPI().Components.Schemas.Map()
	for name, properties := range nullableObjects {
		for _, p := range properties {
			ref := schemas[name].Properties[p]
			schemas[name].Properties[p] = &huma.Schema{
				OneOf:       []*huma.Schema{{Ref: ref.Ref}, {Type: "null"}},
				Description: ref.Description,
			}
		}
	}
}
