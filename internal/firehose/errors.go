package firehose

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// errNoReceipt is a success without a record id: something other than Firehose answered.
var errNoReceipt = errors.New("an answer without a record id")

// errRefusedOne is a record refused within a reply that took others.
var errRefusedOne = errors.New("refused within the batch")

// class says what another try of a failed call is good for.
type class int

const (
	refused         class = iota // the answer would be the same
	busy                         // the service failed or wants less: after a pause
	timedOut                     // no answer in time: at once
	staleConnection              // the call did not survive the way, or a freeze: at once, on a fresh connection
)

// classify sorts the errors of the SDK's client.
func classify(err error) class {
	var (
		api     smithy.APIError
		answer  *smithyhttp.ResponseError
		send    *smithyhttp.RequestSendError
		decode  *smithy.DeserializationError
		network net.Error
	)
	switch {
	case errors.Is(err, errNoReceipt), errors.Is(err, errRefusedOne):
		return busy
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return timedOut
	case errors.Is(err, context.Canceled):
		return refused
	case errors.As(err, &api):
		return classifyCode(api.ErrorCode(), statusOf(err))
	case errors.As(err, &answer) && transient(answer.HTTPStatusCode()):
		return busy
	case errors.As(err, &send):
		return staleConnection
	case errors.As(err, &decode) && statusOf(err) < 300:
		return staleConnection // cut within the answer
	}
	return refused
}

// classifyCode knows the codes that say more than their status.
func classifyCode(code string, status int) class {
	switch code {
	case "ServiceUnavailableException", "ThrottlingException", "Throttling", "ThrottledException", "RequestLimitExceeded",
		"LimitExceededException", "TooManyRequestsException", "RequestThrottled", "RequestThrottledException", "SlowDown",
		"ProvisionedThroughputExceededException", "InternalFailure", "InternalServerError", "RequestTimeout", "RequestTimeoutException":
		return busy
	case "InvalidSignatureException", "RequestExpired", "RequestTimeTooSkewed", "RequestInTheFuture":
		return staleConnection // signed before a freeze and sent after it; the SDK has corrected its clock by the answer
	}
	if transient(status) {
		return busy
	}
	return refused
}

func transient(status int) bool {
	return status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

// statusOf returns the HTTP status of the answer, 0 when there was none.
func statusOf(err error) int {
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode()
	}
	return 0
}
