/** A body that is made to hold the thread while it is decoded, checked or handed on. */
export interface HostileBody {
  readonly name: string;
  readonly type: string;
  /** Made when it is sent: some have megabytes. `member` is one that the endpoint knows. */
  readonly payload: (member: string) => string;
}

const JSON_TYPE = "application/json";
const FORM = "application/x-www-form-urlencoded";

const keys = (count: number): string => `{${Array.from({ length: count }, (_, at) => `"k${at}":${at}`).join()}}`;
const list = (count: number, one: (at: number) => string): string =>
  `[${Array.from({ length: count }, (_, at) => one(at)).join()}]`;
const inMember = (value: string) => (member: string) => `{"${member}":${value}}`;
const inField = (value: string) => (member: string) => `${member}=${encodeURIComponent(value)}`;

export const HOSTILE_BODIES: readonly HostileBody[] = [
  { name: "JSON of 1,200,000 keys", type: JSON_TYPE, payload: () => keys(1_200_000) },
  { name: "a member of 190,000 keys", type: JSON_TYPE, payload: inMember(keys(190_000)) },
  { name: "a member of 3,000 keys", type: JSON_TYPE, payload: inMember(keys(3_000)) },
  { name: "a list of 190,000 objects", type: JSON_TYPE, payload: inMember(list(190_000, (at) => `{"id":${at}}`)) },
  {
    name: "a list of 190,000 unlike objects",
    type: JSON_TYPE,
    payload: inMember(list(190_000, (at) => `{"k${at}":1}`)),
  },
  { name: "a list of 900,000 numbers", type: JSON_TYPE, payload: inMember(list(900_000, String)) },
  { name: "a list of 900,000 texts", type: JSON_TYPE, payload: inMember(list(900_000, (at) => `"t${at}"`)) },
  { name: "4,000,000 empty objects", type: JSON_TYPE, payload: inMember(`[${"{},".repeat(4_000_000)}{}]`) },
  { name: "a text of 2,000,000 escapes", type: JSON_TYPE, payload: inMember(`"${"\\u0041".repeat(2_000_000)}"`) },
  { name: "a text of 15,000,000 signs", type: JSON_TYPE, payload: inMember(`"${"x".repeat(15_000_000)}"`) },
  { name: "a number of 15,000,000 digits", type: JSON_TYPE, payload: inMember("1".repeat(15_000_000)) },
  { name: "7,000,000 brackets", type: JSON_TYPE, payload: inMember("[".repeat(7_000_000)) },
  { name: "a form of 15,000,000 plus signs", type: FORM, payload: (member) => `${member}=${"+".repeat(15_000_000)}` },
  {
    name: "a form of 5,000,000 percent signs",
    type: FORM,
    payload: (member) => `${member}=${"%41".repeat(5_000_000)}`,
  },
  { name: "a form field of 190,000 keys", type: FORM, payload: inField(keys(190_000)) },
  { name: "a form field of 1,000,000 keys", type: FORM, payload: inField(keys(700_000)) },
  {
    name: "a form of 2,000 fields of JSON",
    type: FORM,
    payload: (member) => `${member}[]=${encodeURIComponent(keys(100))}&`.repeat(2_000),
  },
];
