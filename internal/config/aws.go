package config

import (
	"strconv"
	"strings"
	"time"
)

// Function is the Lambda function that the configuration is for.
type Function string

// The functions. The empty one is no function: one machine.
const (
	Route Function = "route"
	Admin Function = "admin"
)

// Where the audit function looks for events.
const (
	AuditS3     = "s3"
	AuditAthena = "athena"
)

// AWS is what only exists on Lambda. It comes from the environment alone: the stack that
// makes these things knows their names.
type AWS struct {
	SessionTable    string // DynamoDB: pins and response aliases
	StateTable      string // DynamoDB: what all instances share
	EventsStream    string // Firehose; the route function's
	URLAuthType     string // NONE, AWS_IAM, or empty: not said; the route function's
	EventsBucket    string // S3; the admin function's, like all below
	AuditEngine     string // AuditS3, AuditAthena
	AthenaDatabase  string // with AuditAthena
	AthenaWorkgroup string // with AuditAthena
	// EventsBuffer is how long the stream may hold an event back; 0: as if 60 s.
	EventsBuffer time.Duration
}

// maxLambdaBody is the largest body that a Function URL's event holds for certain: an event
// has 6,291,556 bytes at most, headers and all.
const maxLambdaBody = 6_000_000

// Variable is a variable of a function's environment.
type Variable struct {
	Name     string
	Required bool   // the function does not start without it
	Meaning  string // what to set it to
}

// Variables lists what the function reads from its environment, besides the settings that
// one machine has as well (SESSION_AUTO_DETECT and the like) and the keys of providers.
// ATHENA_DATABASE and ATHENA_WORKGROUP are required when AUDIT_ENGINE is athena. nil for one
// machine.
func Variables(f Function) []Variable {
	var list []Variable
	for _, v := range (&AWS{}).variables(f, new(string)) {
		list = append(list, v.Variable)
	}
	if list == nil {
		return nil
	}
	return append(list,
		Variable{Name: "SWITCHBOARD_CONFIG", Meaning: "the configuration: a file of the bundle, ssm:/path or secretsmanager:name"},
		Variable{Name: "SWITCHBOARD_ADMIN_KEY", Meaning: "the admin key, or a reference to it"},
		Variable{Name: "SWITCHBOARD_LOG_LEVEL", Meaning: oneOf(logLevels())},
	)
}

// awsVariable is a variable and the field it fills.
type awsVariable struct {
	Variable
	into *string
}

// variables are the function's. buffer takes the one that is no text.
func (a *AWS) variables(f Function, buffer *string) []awsVariable {
	if f == "" {
		return nil
	}
	list := []awsVariable{
		{Variable{"SESSION_TABLE", true, "the name of the DynamoDB table with the sessions"}, &a.SessionTable},
		{Variable{"STATE_TABLE", true, "the name of the DynamoDB table with the shared state"}, &a.StateTable},
	}
	if f == Route {
		return append(list,
			awsVariable{Variable{"EVENTS_STREAM", true, "the name of the Firehose stream for routing events"}, &a.EventsStream},
			awsVariable{Variable{"URL_AUTH_TYPE", false, "the AuthType of the function's URL, NONE or AWS_IAM"}, &a.URLAuthType},
		)
	}
	return append(list,
		awsVariable{Variable{"EVENTS_BUCKET", true, "the name of the S3 bucket with the routing events"}, &a.EventsBucket},
		awsVariable{Variable{"EVENTS_BUFFER_SECONDS", false, "the buffer interval of the Firehose stream, 0 to 900"}, buffer},
		awsVariable{Variable{"AUDIT_ENGINE", false, AuditS3 + " (default) or " + AuditAthena}, &a.AuditEngine},
		awsVariable{Variable{"ATHENA_DATABASE", false, "the name of the Glue database of the routing events"}, &a.AthenaDatabase},
		awsVariable{Variable{"ATHENA_WORKGROUP", false, "the name of the Athena workgroup to query in"}, &a.AthenaWorkgroup},
	)
}

// readAWS reads the environment of a function; every fault is said at once.
func (l *loader) readAWS() {
	a, buffer := &l.cfg.AWS, ""
	for _, v := range a.variables(l.src.Function, &buffer) {
		text := strings.TrimSpace(l.getenv(v.Name))
		switch {
		case text == "" && v.Required:
			l.fail(variable(v.Name), "missing; set it to %s", v.Meaning)
		case strings.ContainsFunc(text, func(r rune) bool { return !resourceRune(r) }) || len(text) > 255:
			l.fail(variable(v.Name), "%s is not usable; set it to %s", show(text), v.Meaning)
		}
		*v.into = text
	}
	if l.src.Function != Admin {
		return
	}
	if buffer != "" {
		seconds, err := strconv.Atoi(buffer)
		if err != nil || seconds < 0 || seconds > 900 {
			l.fail(variable("EVENTS_BUFFER_SECONDS"), "%s is not usable; set it to the buffer interval of the Firehose stream, 0 to 900", show(buffer))
		}
		a.EventsBuffer = time.Duration(seconds) * time.Second
	}
	switch a.AuditEngine {
	case "":
		a.AuditEngine = AuditS3
	case AuditS3:
	case AuditAthena:
		for _, v := range a.variables(Admin, new(string)) {
			if strings.HasPrefix(v.Name, "ATHENA_") && *v.into == "" {
				l.fail(variable(v.Name), "missing, with AUDIT_ENGINE %s; set it to %s", AuditAthena, v.Meaning)
			}
		}
	default:
		l.fail(variable("AUDIT_ENGINE"), "%s is not known; %s", show(a.AuditEngine), oneOf([]string{AuditS3, AuditAthena}))
	}
}

// resourceRune is allowed in names of tables, streams, buckets and workgroups, and in their
// ARNs.
func resourceRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-:/", r)
}

// finishFunction takes out what means nothing on Lambda, and lowers the size of a body to
// what can arrive there.
func (l *loader) finishFunction() {
	if l.src.Function == "" {
		return
	}
	for _, unused := range l.unused {
		if l.carried {
			l.warn("%s is not used on Lambda", unused)
		}
	}
	l.cfg.SessionDBPath = ""
	if l.cfg.MaxBody > maxLambdaBody {
		l.warn("limits.max_body is %d bytes; on Lambda it is %d, because a Function URL takes no larger request", l.cfg.MaxBody, maxLambdaBody)
		l.cfg.MaxBody = maxLambdaBody
	}
	if l.src.Function == Admin && l.cfg.Auth.Admin == nil {
		l.warn("there is no admin key, so everybody is refused; set auth.admin or SWITCHBOARD_ADMIN_KEY")
	}
}
