/** A body designed to block the thread while it is decoded, checked or passed on. */
export interface HostileBody {
  readonly name: string;
  readonly type: string;
  /** Created when it is sent, because some have megabytes. `member`: a member that the endpoint knows. */
  readonly payload: (member: string) => string;
  /** Minimum number of pauses in which it is decoded, unless refused before. 0: it is always refused, or small. */
  readonly pauses: number;
  /** True: sent in every run of the tests. */
  readonly always?: true;
}

/** Targets of hostile bodies: one endpoint for each way in which bodies are bounded and used. */
export interface HostileTarget {
  readonly name: string;
  readonly path: string;
  readonly member: string;
  readonly isSignedIn: boolean;
  /** True if it decodes large bodies; otherwise it refuses them unread. */
  readonly takesLarge?: true;
  /** True: the benchmark sends it all bodies. Others get only those of every run. */
  readonly isOfAll?: true;
  readonly always?: true;
}

export const HOSTILE_TARGETS: readonly HostileTarget[] = [
  { name: "a stranger's sign-in", path: "/user/signin", member: "username", isSignedIn: false, always: true },
  { name: "a stranger's call", path: "/config/set", member: "value", isSignedIn: false },
  { name: "one's own tokens", path: "/user/tokens", member: "scopes", isSignedIn: true },
  {
    name: "objects to a class",
    path: "/mxobject/actiontoclass",
    member: "data",
    isSignedIn: true,
    takesLarge: true,
    isOfAll: true,
    always: true,
  },
  { name: "a value of configuration", path: "/config/set", member: "value", isSignedIn: true, takesLarge: true },
  { name: "jobs", path: "/job/batch", member: "jobs", isSignedIn: true, takesLarge: true, isOfAll: true },
  { name: "a statement", path: "/mxobject/mql", member: "mql", isSignedIn: true, takesLarge: true, isOfAll: true },
  { name: "the values of a statement", path: "/mxobject/mql", member: "values", isSignedIn: true, takesLarge: true },
  { name: "a policy", path: "/monitoring/policy", member: "policy", isSignedIn: true, takesLarge: true },
  { name: "an item of a context", path: "/appcontext/collection/a", member: "id", isSignedIn: true },
  { name: "a tree of tags", path: "/tagdir/a", member: "nodes", isSignedIn: true, takesLarge: true },
];

const JSON_TYPE = "application/json";
const FORM = "application/x-www-form-urlencoded";

const keys = (count: number): string => `{${Array.from({ length: count }, (_, at) => `"k${at}":${at}`).join()}}`;
const list = (count: number, one: (at: number) => string): string =>
  `[${Array.from({ length: count }, (_, at) => one(at)).join()}]`;
const inMember = (value: string) => (member: string) => `{"${member}":${value}}`;
const inField = (value: string) => (member: string) => `${member}=${encodeURIComponent(value)}`;

export const HOSTILE_BODIES: readonly HostileBody[] = [
  { name: "JSON of 1,200,000 keys", type: JSON_TYPE, pauses: 0, payload: () => keys(1_200_000) },
  { name: "a member of 90,000 keys", type: JSON_TYPE, pauses: 180, payload: inMember(keys(90_000)), always: true },
  { name: "JSON of 90,000 keys", type: JSON_TYPE, pauses: 90, payload: () => keys(90_000) },
  { name: "a member of 3,000 keys", type: JSON_TYPE, pauses: 0, payload: inMember(keys(3_000)) },
  {
    name: "a list of 90,000 objects",
    type: JSON_TYPE,
    pauses: 360,
    payload: inMember(list(90_000, (at) => `{"id":${at}}`)),
  },
  {
    name: "a list of 90,000 unlike objects",
    type: JSON_TYPE,
    pauses: 360,
    payload: inMember(list(90_000, (at) => `{"k${at}":1}`)),
    always: true,
  },
  { name: "a list of 450,000 numbers", type: JSON_TYPE, pauses: 450, payload: inMember(list(450_000, String)) },
  {
    name: "a list of 450,000 texts",
    type: JSON_TYPE,
    pauses: 450,
    payload: inMember(list(450_000, (at) => `"t${at}"`)),
    always: true,
  },
  {
    name: "4,000,000 empty objects",
    type: JSON_TYPE,
    pauses: 1_000,
    payload: inMember(`[${"{},".repeat(4_000_000)}{}]`),
  },
  {
    name: "a text of 2,000,000 escapes",
    type: JSON_TYPE,
    pauses: 23,
    payload: inMember(`"${"\\u0041".repeat(2_000_000)}"`),
  },
  { name: "a text of 15,000,000 signs", type: JSON_TYPE, pauses: 57, payload: inMember(`"${"x".repeat(15_000_000)}"`) },
  { name: "a number of 15,000,000 digits", type: JSON_TYPE, pauses: 0, payload: inMember("1".repeat(15_000_000)) },
  { name: "7,000,000 brackets", type: JSON_TYPE, pauses: 0, payload: inMember("[".repeat(7_000_000)) },
  {
    name: "a form of 15,000,000 plus signs",
    type: FORM,
    pauses: 229,
    payload: (member) => `${member}=${"+".repeat(15_000_000)}`,
    always: true,
  },
  {
    name: "a form of 5,000,000 percent signs",
    type: FORM,
    pauses: 229,
    payload: (member) => `${member}=${"%41".repeat(5_000_000)}`,
  },
  { name: "a form field of 90,000 keys", type: FORM, pauses: 32, payload: inField(keys(90_000)) },
  {
    name: "a form field of 1,000 objects of 90 keys",
    type: FORM,
    pauses: 180,
    payload: inField(list(1_000, () => keys(90))),
  },
  {
    name: "a form field of 4,000,000 empty objects",
    type: FORM,
    pauses: 0,
    payload: (member) => `${member}=[${"{},".repeat(4_000_000)}{}]`,
  },
  { name: "a form field of 1,000,000 keys", type: FORM, pauses: 0, payload: inField(keys(700_000)) },
  {
    name: "a form of 2,000 fields of JSON",
    type: FORM,
    pauses: 2_000,
    payload: (member) => `${member}[]=${encodeURIComponent(keys(100))}&`.repeat(2_000),
  },
];
