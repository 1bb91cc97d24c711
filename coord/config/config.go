// Package config is Kafka's settings by Kafka's names: what each is, its default, its check, and whether
// Platter does it, ignores it (with a warning by name) or must refuse it.
package config

import "platter/engine/commitlog"

// Support says what becomes of a setting.
type Support int

const (
	// Supported: it does what Kafka's documentation says.
	Supported Support = iota
	// Ignored: Kafka knows it, here it has no effect, and leaving it out breaks no promise: warned by name.
	Ignored
	// Refused: neglecting it would break a promise (security, durability): an error, unless at its default.
	Refused
)

// Type is a setting's type as Kafka's DescribeConfigs numbers it.
type Type int8

// Types.
const (
	Boolean  Type = 1
	String   Type = 2
	Int      Type = 3
	Short    Type = 4
	Long     Type = 5
	Double   Type = 6
	List     Type = 7
	Class    Type = 8
	Password Type = 9
)

// Def is one setting.
type Def struct {
	Name    string
	Type    Type
	Default string
	Doc     string
	Support Support
	// Synonym is, for a topic setting, the broker setting that gives its default ("log.retention.ms").
	Synonym string
	Check   func(value string) error
}

// Topic finds a topic setting's definition; TopicDefs lists all, by name.
func Topic(name string) (Def, bool) { panic("stub") }
func TopicDefs() []Def              { panic("stub") }

// BrokerDef finds a broker setting's definition; BrokerDefs lists all, by name.
func BrokerDef(name string) (Def, bool) { panic("stub") }
func BrokerDefs() []Def                 { panic("stub") }

// Broker is a broker's effective settings.
type Broker struct{}

// Source is where a value came from, as DescribeConfigs numbers it.
type Source int8

// Sources.
const (
	TopicConfig    Source = 1
	DynamicBroker  Source = 2
	DynamicDefault Source = 3
	StaticBroker   Source = 4
	Default        Source = 5
)

// Load checks properties (a server.properties as a map) with overrides on top. warnings name each
// setting that is unknown or has no effect; err names each that is refused or malformed.
func Load(props, overrides map[string]string) (b *Broker, warnings []string, err error) {
	panic("stub")
}

// Value returns the effective value and where it came from.
func (b *Broker) Value(name string) (string, Source) { panic("stub") }

// Int, Int64, Bool, List read a checked value; a name without a definition is a bug and panics.
func (b *Broker) Int(name string) int       { panic("stub") }
func (b *Broker) Int64(name string) int64   { panic("stub") }
func (b *Broker) Bool(name string) bool     { panic("stub") }
func (b *Broker) List(name string) []string { panic("stub") }

// CheckTopic validates a topic's overrides, one error naming the first bad setting.
func CheckTopic(overrides map[string]string) error { panic("stub") }

// Log makes the engine's settings of a topic: its overrides over the broker's defaults.
func (b *Broker) Log(overrides map[string]string) commitlog.Config { panic("stub") }

// TopicValue is a topic setting's effective value and source.
func (b *Broker) TopicValue(name string, overrides map[string]string) (string, Source) { panic("stub") }

// MinISR is min.insync.replicas of a topic.
func (b *Broker) MinISR(overrides map[string]string) int { panic("stub") }
