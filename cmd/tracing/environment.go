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

// shutdownTimeout bounds the sending of the last spans.
const shutdownTimeout = 5 * time.Second

// FromEnvironment makes a Tracer that sends spans by OTLP over HTTP where the standard
// variables ask for it: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
// OTEL_TRACES_EXPORTER=otlp. Else, or with OTEL_SDK_DISABLED=true or OTEL_TRACES_EXPORTER=none,
// it is nil. getenv decides that; what else there is to set (headers, certificates, sampler,
// OTEL_SERVICE_NAME, whose default is "rowfeed") is read from the process's environment by
// OpenTelemetry's SDK. shutdown, never nil, sends what has not been sent, for 5 s at most.
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
		_ = provider.Shutdown(bounded) // traces are no reason to fail
	}, nil
}

func unfit(name, value, fit string) error {
	return &feedtype.Error{Code: feedtype.InvalidRequest, Object: "OpenTelemetry",
		Cause: fmt.Sprintf("%s: %q is not supported", name, value), Next: "set it to " + fit + ", or leave it out"}
}
