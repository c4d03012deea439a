package tracing

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// shutdownTimeout is the maximum time for sending the last spans.
const shutdownTimeout = 5 * time.Second

// FromEnvironment returns a Tracer that sends spans by OTLP over HTTP, if the standard variables ask for it:
// OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_TRACES_EXPORTER=otlp. Otherwise it returns
// nil, and also with OTEL_SDK_DISABLED=true or OTEL_TRACES_EXPORTER=none.
//
// getenv returns the variables that decide this. OpenTelemetry's SDK reads all others from the environment of the
// process: headers, certificates, sampler, and OTEL_SERVICE_NAME, whose default is "rowfeed". shutdown, which is
// never nil, sends the remaining spans, for at most 5 s.
func FromEnvironment(ctx context.Context, getenv func(string) string) (t feedtype.Tracer, shutdown func(), err error) {
	none := func() {}
	exporter := getenv("OTEL_TRACES_EXPORTER")
	asked := exporter == "otlp" || getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
		getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	switch {
	case !asked || exporter == "none" || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true"):
		return nil, none, nil
	case exporter != "" && exporter != "otlp":
		return nil, none, unfit("OTEL_TRACES_EXPORTER", exporter, "otlp or none")
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := getenv(name); protocol != "" && protocol != "http/protobuf" {
			return nil, none, unfit(name, protocol, "http/protobuf")
		}
	}
	sender, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, none, &feedtype.Error{Code: feedtype.InvalidRequest, Object: "OpenTelemetry",
			Cause: "no exporter can be made of the variables OTEL_EXPORTER_OTLP_…", Err: err}
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "rowfeed")),
		resource.WithFromEnv(), resource.WithTelemetrySDK(), resource.WithHost())
	if err != nil {
		return nil, none, &feedtype.Error{Code: feedtype.InvalidRequest, Object: "OpenTelemetry",
			Cause: "OTEL_RESOURCE_ATTRIBUTES cannot be read", Err: err}
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(sender), sdk.WithResource(about))
	return New(provider), func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		_ = provider.Shutdown(bounded) // unsent traces are not an error
	}, nil
}

func unfit(name, value, fit string) error {
	return &feedtype.Error{Code: feedtype.InvalidRequest, Object: "OpenTelemetry",
		Cause: fmt.Sprintf("%s: %q is not supported", name, value), Next: "set it to " + fit + ", or leave it out"}
}
