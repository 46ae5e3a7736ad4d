/** Position of a node in the text in UTF-16 units, end excluded. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export interface At {
  readonly span: Span;
}

// Values

export type ValueNode = TextNode | NumberNode | ConstantNode | ListNode | MapNode | Placeholder;

export interface TextNode extends At {
  readonly kind: "text";
  readonly value: string;
}

export interface NumberNode extends At {
  readonly kind: "number";
  /** As written, with a `-` if negative, because integers may exceed the range of a double. */
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
  /** Index in the whole script, from 0. */
  readonly index: number;
}

// Fields and conditions

export interface Field extends At {
  readonly kind: "field";
  /** A column, or an alias and a column; further parts are members of a map. */
  readonly parts: readonly string[];
  /** For a time series: only the points in this window, as in `load['2026-01-01':'2026-01-02']`. */
  readonly window?: TimeWindow;
}

export interface TimeWindow extends At {
  readonly kind: "window";
  /** Inclusive; absent: from the beginning. */
  readonly from: ValueNode | undefined;
  /** Exclusive; absent: to the end. */
  readonly to: ValueNode | undefined;
}

export interface Call extends At {
  readonly kind: "call";
  /** In lower case. */
  readonly name: string;
  readonly distinct: boolean;
  /** Absent for `*`. */
  readonly argument: Field | Expression | undefined;
  /** Step width of a time series, as in `avg(load, '5 minute')`, or another parameter of the aggregate. */
  readonly step?: ValueNode;
}

/** A value computed from others with an operator or a function: `size * 2`, `lower(name)`, `cast(size AS text)`. */
export interface Computed extends At {
  readonly kind: "computed";
  /** `+ - * / ||`, or the function's name in lower case. */
  readonly name: string;
  readonly operands: readonly Operand[];
  /** Zone for a calendar function that names none. Set before the function runs; never printed. */
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

/** A condition used as a value; null if it is unknown. */
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

/** A comparison with a value that depends on the row: `a > b * 2`. */
export interface Relate extends At {
  readonly kind: "relate";
  readonly operator: CompareOperator;
  readonly left: Operand;
  readonly right: Operand;
}

export interface In extends At {
  readonly kind: "in";
  readonly operand: Operand;
  /** Values, or one placeholder or list that represents all of them. */
  readonly values: readonly ValueNode[];
  /** The SELECT that returned the values. Values that the operand can never equal are ignored. */
  readonly foundBy?: Select;
  readonly negated: boolean;
}

/** `f IN (SELECT g FROM …)`: allowed in any condition of a statement, but not in a separate condition. */
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
  /** True if written with a trailing slash: the class and all its subclasses. */
  readonly subtree: boolean;
  readonly alias: string | undefined;
}

/** `(SELECT …) alias`: its result, queried like the objects of a class. */
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

/** `lag(n, 1) OVER (PARTITION BY host ORDER BY at)`: a value computed from a row and its neighbours. */
export interface WindowItem extends At {
  readonly kind: "window";
  /** In lower case. */
  readonly name: string;
  /** Empty for `count(*)`. */
  readonly operands: readonly Operand[];
  readonly partitionBy: readonly Operand[];
  readonly orderBy: readonly OrderItem[];
  readonly alias: string | undefined;
}

/** `FILL (0)` after GROUP BY: time steps without rows are returned too, with this value for the aggregates. */
export interface Fill extends At {
  readonly kind: "fill";
  readonly value: NumberNode | ConstantNode | "previous";
}

export interface Join extends At {
  readonly kind: "join";
  /** LEFT JOIN: rows without a partner are kept. */
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

/** Order and window of a result. */
export interface Tail {
  readonly orderBy: readonly OrderItem[];
  readonly limit: Count | undefined;
  readonly offset: Count | undefined;
  /** End of the previous page, as its answer gave it; an empty text for the first page. */
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

/** Order, limit and cursor belong to the whole union; its parts have none. */
export interface Union extends At, Tail {
  readonly kind: "union";
  readonly all: boolean;
  readonly selects: readonly Select[];
  /** Applies to the parts that name no time of their own. */
  readonly asOf: ValueNode | undefined;
}

export interface SelectEdgeTypes extends At {
  readonly kind: "selectEdgeTypes";
}
