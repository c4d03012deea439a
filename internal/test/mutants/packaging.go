package main

const commandLine = "./cmd/rowfeed"

// packaging takes away what people rely on who install rowfeed, configure and upgrade it.
var packaging = []mutant{
	{
		Name: "completion-waits", Guards: "a shell waits for names from the database for a second at most",
		File: "cmd/rowfeed/completion.go", Old: "cmp.Or(a.completing, completionTime)", New: "cmp.Or(a.completing, 1000*completionTime)",
		Package: commandLine, Test: "TestCompletionIsSilent", Engines: "sqlite",
	},
	{
		Name: "completion-of-files", Guards: "no word of rowfeed's is a file by chance",
		File: "cmd/rowfeed/completion.go", Old: "	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)\n", New: "",
		Package: commandLine, Test: "TestCompletion", Engines: "sqlite",
	},
	{
		Name: "a-file-of-no-schema", Guards: "the loader takes what the schema says, and nothing else",
		File: "internal/config/config.go", Old: "		if err := validate(path, data); err != nil {\n			return nil, err\n		}\n		return &f, nil", New: "		return &f, nil",
		Package: "./internal/config", Test: "TestSchemaAndLoaderAgree", Engines: "sqlite",
	},
	{
		Name: "a-value-that-is-shown", Guards: "what does not fit may be a secret: messages show numbers alone",
		File: "internal/config/schema.go", Old: "if number, ok := value.(float64); ok {\n		shown = strconv.FormatFloat(number, 'f', -1, 64)\n	}", New: "if value != nil {\n		shown = fmt.Sprint(value)\n	}",
		Package: "./internal/config", Test: "TestUnfitValuesAreNotShown", Engines: "sqlite",
	},
	{
		Name: "a-key-without-a-word", Guards: "every key of the file is explained",
		File: "internal/config/config.go", Old: "	Schema *string `yaml:\"schema\"`", New: "	Schema *string `yaml:\"schema\"`\n	Colour *string `yaml:\"colour\"`",
		Package: "./internal/config", Test: "TestSchemaIsTheStruct", Engines: "sqlite",
	},
	{
		Name: "ready-without-asking", Guards: "rowfeed ready tells a server that is not",
		File: "cmd/rowfeed/ready.go", Old: "if response.StatusCode != http.StatusOK || !answer.Ready {", New: "if false {",
		Package: commandLine, Test: "TestReady", Engines: "sqlite",
	},
	{
		Name: "an-upgrade-that-loses", Guards: "M63: an upgrade keeps what consumers have",
		File: "dialect/sqlite/token.go", Old: `			"INSERT INTO " + name("schema_version") + " VALUES (8, "`, New: `			"DELETE FROM " + name("leases"), "INSERT INTO " + name("schema_version") + " VALUES (8, "`,
		Package: conformance, Test: "TestUpgradeSaved", Engines: "sqlite", Short: true,
	},
	{
		Name: "tables-of-tomorrow", Guards: "an older rowfeed leaves newer tables alone",
		File: "setup.go", Old: "current > newest {", New: "false && current > newest {",
		Package: conformance, Test: "TestUpgradeSaved", Engines: "sqlite",
	},
	{Name: "a-file-that-ends-the-program", Guards: "whatever rowfeed.yaml has, what is wrong is said", File: "internal/config/config.go",
		Old: "if recover() != nil {", New: "if err != nil {",
		Package: "./internal/config", Test: "FuzzConfig", Engines: "sqlite"},
	{Name: "tails-of-passwords-shown", Guards: "no message shows a part of a password that was left unencoded", File: "internal/open/redact.go",
		Old: "range tails(rawURL) {", New: "range tails(\"\") {",
		Package: "./internal/open", Test: "FuzzPassword", Engines: "sqlite"},
}
