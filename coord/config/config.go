// Package config is Kafka's settings by Kafka's names: what each is, its default, its check, and whether
// Platter does it, ignores it (with a warning by name) or must refuse it.
//
// The settings themselves are the Markdown tables in tables/: people read them as documentation, and the
// program reads the very same text when it starts. Names, types, defaults and ranges are those of Apache
// Kafka 3.9 in ZooKeeper mode but for `listeners`, `log.dir` and `zookeeper.connect`, and for Platter's own
// (tables/platter.md).
//
// A Broker is made once by Load; afterwards only SetDynamic changes it, in one step. It is safe for
// concurrent use.
package config

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
	// Null: without a value unless it is set (Default is "" then).
	Null bool
	// Valid is the range as the table gives it: "1..", "0..1", "a / b"; "" when the type says all.
	Valid string
	Doc   string
	// Support, and for Ignored and Refused the reason.
	Support Support
	Why     string
	// Synonym is, for a topic setting, the broker setting that gives its default ("log.retention.ms").
	Synonym string
	// Check tells whether a value is well-formed and in range.
	Check func(value string) error
}

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

// Topic finds a topic setting's definition.
func Topic(name string) (Def, bool) { return topicTable.find(name) }

// TopicDefs lists all topic settings, by name.
func TopicDefs() []Def { return topicTable.list() }

// BrokerDef finds a broker setting's definition.
func BrokerDef(name string) (Def, bool) { return brokerTable.find(name) }

// BrokerDefs lists all broker settings, by name.
func BrokerDefs() []Def { return brokerTable.list() }

// CoordinatorDef finds the definition of one of the coordinator's settings, those of a zoo.cfg.
func CoordinatorDef(name string) (Def, bool) { return coordTable.find(name) }

// CoordinatorDefs lists all of them, by name.
func CoordinatorDefs() []Def { return coordTable.list() }
