/**
 * The language as data: plain readonly nodes. `span` is where a node stands in the text, in UTF-16 units, end excluded.
 */

export interface Span {
  readonly start: number;
  readonly end: number;
}

interface At {
  readonly span: Span;
}

export interface Script extends At {
  readonly kind: "script";
  readonly statements: readonly Statement[];
  /** How many `?` there are. */
  readonly placeholders: number;
}

export type Statement =
  | Select
  | Union
  | SelectEdgeTypes
  | Insert
  | InsertJson
  | Update
  | Delete
  | CreateClass
  | DropClass
  | AlterClass
  | CreateEdgeType
  | DropEdgeType
  | Match
  | Batch
  | Explain;

// Values

export type ValueNode = TextNode | NumberNode | ConstantNode | ListNode | MapNode | Placeholder;

export interface TextNode extends At {
  readonly kind: "text";
  readonly value: string;
}

export interface NumberNode extends At {
  readonly kind: "number";
  /** As written, with a `-` when negative: integers may be beyond what a double holds. */
  readonly text: string;
}

export interface ConstantNode extends At {
  readonly kind: "constant";
  readonly value: boolean | null;
}

export interface ListNode extends At {
  readonly kind: "list";
  readonly items: readonly ValueNode[];
}

export interface MapNode extends At {
  readonly kind: "map";
  readonly entries: readonly MapEntry[];
}

export interface MapEntry extends At {
  readonly kind: "entry";
  readonly key: string;
  readonly value: ValueNode;
}

export interface Placeholder extends At {
  readonly kind: "placeholder";
  /** Counted over the whole script from 0. */
  readonly index: number;
}

// Fields and conditions

export interface Field extends At {
  readonly kind: "field";
  /** A column, or an alias and a column, then members of a map. */
  readonly parts: readonly string[];
  /** For a time series: only the points of this window, as in `load['2026-01-01':'2026-01-02']`. */
  readonly window?: TimeWindow;
}

export interface TimeWindow extends At {
  readonly kind: "window";
  /** Included; absent: from the beginning. */
  readonly from: ValueNode | undefined;
  /** Excluded; absent: to the end. */
  readonly to: ValueNode | undefined;
}

export interface Call extends At {
  readonly kind: "call";
  /** In lower case. */
  readonly name: string;
  readonly distinct: boolean;
  /** Absent for `*`. */
  readonly argument: Field | Expression | undefined;
  /** Width of the steps of a time series, as in `avg(load, '5 minute')`, or what the aggregate needs to know. */
  readonly step?: ValueNode;
}

/** A value made of others, by a sign or by a function: `size * 2`, `lower(name)`, `cast(size AS text)`. */
export interface Computed extends At {
  readonly kind: "computed";
  /** `+ - * / ||`, or the function's name in lower case. */
  readonly name: string;
  readonly operands: readonly Operand[];
  /** The zone that a function of the calendar means where it names none: set before it is run, never printed. */
  readonly zone?: string;
}

/** `CASE WHEN a > 1 THEN 'many' ELSE 'few' END`. */
export interface Case extends At {
  readonly kind: "case";
  readonly branches: readonly Branch[];
  readonly otherwise: Operand | undefined;
}

export interface Branch {
  readonly when: Condition;
  readonly then: Operand;
}

/** A condition as a value: null where it is unknown. */
export interface Truth extends At {
  readonly kind: "truth";
  readonly condition: Condition;
}

export type Expression = Computed | Case | Truth;
export type Operand = Field | Call | ValueNode | Expression;
export type CompareOperator = "=" | "!=" | ">" | "<" | ">=" | "<=";
export type TextOperator = "MATCH" | "PHRASE" | "PREFIX" | "FUZZY";

export type Condition =
  | And
  | Or
  | Not
  | Compare
  | Relate
  | In
  | InSelect
  | Like
  | Between
  | IsNull
  | Contains
  | TextMatch;

export interface And extends At {
  readonly kind: "and";
  readonly items: readonly Condition[];
}

export interface Or extends At {
  readonly kind: "or";
  readonly items: readonly Condition[];
}

export interface Not extends At {
  readonly kind: "not";
  readonly operand: Condition;
}

export interface Compare extends At {
  readonly kind: "compare";
  readonly operator: CompareOperator;
  readonly left: Operand;
  readonly right: ValueNode;
}

/** A comparison with what is no value before a row is there: `a > b * 2`. */
export interface Relate extends At {
  readonly kind: "relate";
  readonly operator: CompareOperator;
  readonly left: Operand;
  readonly right: Operand;
}

export interface In extends At {
  readonly kind: "in";
  readonly operand: Operand;
  /** Values, or one placeholder or list that stands for them. */
  readonly values: readonly ValueNode[];
  /** What answered them: those that the operand can never equal count for nothing. */
  readonly foundBy?: Select;
  readonly negated: boolean;
}

/** `f IN (SELECT g FROM …)`: in any condition of a statement, and in none that stands alone. */
export interface InSelect extends At {
  readonly kind: "inSelect";
  readonly operand: Operand;
  readonly select: Select;
  readonly negated: boolean;
}

export interface Like extends At {
  readonly kind: "like";
  readonly operand: Operand;
  readonly pattern: ValueNode;
  readonly negated: boolean;
}

export interface Between extends At {
  readonly kind: "between";
  readonly operand: Operand;
  readonly low: ValueNode;
  readonly high: ValueNode;
  readonly negated: boolean;
}

export interface IsNull extends At {
  readonly kind: "isNull";
  readonly operand: Operand;
  readonly negated: boolean;
}

export interface Contains extends At {
  readonly kind: "contains";
  readonly operand: Operand;
  readonly value: ValueNode;
  readonly negated: boolean;
}

export interface TextMatch extends At {
  readonly kind: "textMatch";
  readonly operator: TextOperator;
  readonly operand: Operand;
  readonly value: ValueNode;
  readonly negated: boolean;
}

// Reading

export interface ClassRef extends At {
  readonly kind: "class";
  /** Without a trailing slash, except `/` itself. */
  readonly path: string;
  /** Written with a trailing slash: the class and all its subclasses. */
  readonly subtree: boolean;
  readonly alias: string | undefined;
}

/** `(SELECT …) alias`: what it answers, asked like the objects of a class. */
export interface SelectRef extends At {
  readonly kind: "selected";
  readonly select: Select | Union;
  readonly alias: string | undefined;
}

export type Source = ClassRef | SelectRef;
export type SelectItem = Star | Item | WindowItem;

export interface Star extends At {
  readonly kind: "star";
  /** `a.*`: all columns of one of the classes. */
  readonly alias: string | undefined;
}

export interface Item extends At {
  readonly kind: "item";
  readonly value: Operand;
  readonly alias: string | undefined;
}

/** `lag(n, 1) OVER (PARTITION BY host ORDER BY at)`: about a row and those beside it. */
export interface WindowItem extends At {
  readonly kind: "window";
  /** In lower case. */
  readonly name: string;
  /** None for `count(*)`. */
  readonly operands: readonly Operand[];
  readonly partitionBy: readonly Operand[];
  readonly orderBy: readonly OrderItem[];
  readonly alias: string | undefined;
}

/** `FILL (0)` behind GROUP BY: the steps of time without rows are answered too, with this as what is put together. */
export interface Fill extends At {
  readonly kind: "fill";
  readonly value: NumberNode | ConstantNode | "previous";
}

export interface Join extends At {
  readonly kind: "join";
  /** LEFT JOIN: what finds no partner stays, without one. */
  readonly outer: boolean;
  readonly class: Source;
  readonly left: Field;
  readonly right: Field;
}

export interface OrderItem extends At {
  readonly kind: "order";
  readonly value: Operand;
  readonly descending: boolean;
}

export type Count = NumberNode | Placeholder;

/** Where an answer begins and ends. */
export interface Tail {
  readonly orderBy: readonly OrderItem[];
  readonly limit: Count | undefined;
  readonly offset: Count | undefined;
  /** Where the page before ended, as its answer said; empty text for the first page. */
  readonly cursor: TextNode | Placeholder | undefined;
}

export interface Select extends At, Tail {
  readonly kind: "select";
  readonly distinct: boolean;
  readonly items: readonly SelectItem[];
  readonly from: Source;
  readonly joins: readonly Join[];
  readonly asOf: ValueNode | undefined;
  readonly where: Condition | undefined;
  readonly groupBy: readonly Operand[];
  readonly fill?: Fill | undefined;
  readonly having: Condition | undefined;
}

/** Order, limit and cursor are those of the whole; its parts have none. */
export interface Union extends At, Tail {
  readonly kind: "union";
  readonly all: boolean;
  readonly selects: readonly Select[];
  /** For the parts that name no time of their own. */
  readonly asOf: ValueNode | undefined;
}

export interface SelectEdgeTypes extends At {
  readonly kind: "selectEdgeTypes";
}

// Writing

export interface Insert extends At {
  readonly kind: "insert";
  readonly class: ClassRef;
  readonly form: "set" | "values";
  readonly columns: readonly string[];
  readonly rows: readonly (readonly ValueNode[])[];
  /** Version time. */
  readonly at: ValueNode | undefined;
  /** Absent: an ordinary insert. */
  readonly past?: PastInsert | undefined;
}

/** `INSERT VERSION` has an earlier state of an object, `INSERT REMOVAL` the end of one. Its time is the member `vtime`. */
export interface PastInsert {
  readonly kind: "version" | "removal";
  /** When the object would have ended by the ttl of its class. */
  readonly until?: ValueNode | undefined;
  /** Relations that the write of the state set and took away: lists of ids by edge type. */
  readonly added?: ValueNode | undefined;
  readonly dropped?: ValueNode | undefined;
  /** When removals of their targets took away relations that the write set: times by id by edge type. */
  readonly lost?: ValueNode | undefined;
}

export interface InsertJson extends At {
  readonly kind: "insertJson";
  readonly json: TextNode | Placeholder;
}

export interface Assignment extends At {
  readonly kind: "assignment";
  readonly column: string;
  readonly operation: "set" | "add" | "take";
  /** A value, unless it is set to what is made of the object as it is. */
  readonly value: Operand;
  /** The column once more, as in `f = F + v`, where that is written in another case. */
  readonly repeated?: string;
}

export interface Update extends At {
  readonly kind: "update";
  readonly class: ClassRef;
  readonly assignments: readonly Assignment[];
  readonly where: Condition | undefined;
  readonly refresh: boolean;
}

export interface Delete extends At {
  readonly kind: "delete";
  /** Clears this column only. */
  readonly column: string | undefined;
  readonly class: ClassRef;
  readonly where: Condition | undefined;
  readonly limit: Count | undefined;
  readonly withVersion: boolean;
}

// Definitions

export interface ColumnDefinition extends At {
  readonly kind: "column";
  readonly name: string;
  /** In lower case. */
  readonly type: string;
  readonly elements: readonly string[];
  /** Labels of `enum`, options of `bucket`. */
  readonly details: MapNode | undefined;
  readonly title: string | undefined;
}

export interface ClassOption extends At {
  readonly kind: "option";
  /** In lower case. */
  readonly name: string;
  readonly value: ValueNode;
  /** Unit word after a number, in lower case, as in `ttl=30 day`. */
  readonly unit: string | undefined;
}

export interface CreateClass extends At {
  readonly kind: "createClass";
  readonly ifNotExists: boolean;
  readonly class: ClassRef;
  readonly columns: readonly ColumnDefinition[];
  readonly keys: readonly string[];
  readonly indexes: readonly string[];
  readonly options: readonly ClassOption[];
}

export interface DropClass extends At {
  readonly kind: "dropClass";
  readonly ifExists: boolean;
  readonly class: ClassRef;
}

export type ClassAlteration =
  | { readonly kind: "addColumn"; readonly column: ColumnDefinition; readonly span: Span }
  | { readonly kind: "dropColumn" | "addKey" | "dropKey"; readonly name: string; readonly span: Span }
  | {
      readonly kind: "addIndex" | "dropIndex";
      readonly name: string;
      readonly type: string | undefined;
      readonly span: Span;
    }
  | { readonly kind: "setOptions"; readonly options: readonly ClassOption[]; readonly span: Span };

export interface AlterClass extends At {
  readonly kind: "alterClass";
  readonly class: ClassRef;
  readonly alteration: ClassAlteration;
}

export interface CreateEdgeType extends At {
  readonly kind: "createEdgeType";
  readonly ifNotExists: boolean;
  readonly name: string;
  readonly remedy: string | undefined;
}

export interface DropEdgeType extends At {
  readonly kind: "dropEdgeType";
  readonly ifExists: boolean;
  readonly name: string;
}

// Graph

export interface Match extends At {
  readonly kind: "match";
  readonly chains: readonly Chain[];
  /** About nodes by their names, `m.size > 1`; about the start nodes where no name is said. */
  readonly where: Condition | undefined;
  readonly pathMode: PathMode | undefined;
  /** Tags named after `path`. */
  readonly pathTags: readonly string[];
  readonly returns: readonly string[];
  readonly until: string | undefined;
  readonly diff: ValueNode | undefined;
  readonly asOf: ValueNode | undefined;
}

export type PathMode = "short" | "long" | "all" | "detail" | "back" | "any";

export interface Chain extends At {
  readonly kind: "chain";
  readonly start: GraphNode;
  readonly steps: readonly GraphStep[];
}

export interface GraphStep extends At {
  readonly kind: "step";
  readonly direction: "out" | "in" | "both";
  /** Absent: relations of any type. */
  readonly type: string | undefined;
  /** Steps at most; `any` is any depth. */
  readonly depth: number | "any";
  readonly node: GraphNode;
}

export interface GraphNode extends At {
  readonly kind: "node";
  readonly name: string | undefined;
  /** Ids or patterns of ids. */
  readonly ids: readonly string[];
  /** A path, with a trailing slash for subclasses too, or a last path component. */
  readonly class: string | undefined;
  readonly where: Condition | undefined;
  readonly limit: Count | undefined;
}

// Around statements

export interface Batch extends At {
  readonly kind: "batch";
  readonly statements: readonly Statement[];
}

export interface Explain extends At {
  readonly kind: "explain";
  /** Runs it and says what it read and how long it took. */
  readonly analyzes: boolean;
  readonly statement: Statement;
}
