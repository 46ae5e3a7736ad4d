import { Type } from "typebox";
import type { Row, Value } from "../../../common/value.ts";
import { hostFunction, type HostObject } from "../../scripting/index.ts";
import type { SchemaService } from "./service.ts";

const CLASS = { name: "class", schema: Type.String({ description: "Its path" }) } as const;
const CLASS_OR_NUMBER = {
  name: "class",
  schema: Type.Union([Type.String(), Type.Integer()], { description: "Its path or number" }),
} as const;

/** Functions of `odb` about classes and their fields. Classes that the script may not read do not exist for it. */
export function schemaHostObject(schema: SchemaService): HostObject {
  return {
    name: "odb",
    summary: "Objects and their classes, with the rights of the script",
    functions: [
      hostFunction({
        name: "classlist",
        summary: "A class and those one step below; given by number, only those below",
        parameters: [{ ...CLASS_OR_NUMBER, optional: true }],
        returns: "list of records of classes; the root without a class",
        example: 'OUTPUT = odb.classlist("/matrix/consolelog")',
        call: async ({ principal }, id) => valueOf(await schema.list(principal, id === undefined ? id : String(id))),
      }),
      hostFunction({
        name: "classfields",
        summary: "Fields of a class, inherited ones too",
        parameters: [CLASS_OR_NUMBER],
        returns: "list of records of fields",
        example: 'OUTPUT = _.pluck(odb.classfields("/matrix/consolelog/serverjs"), "name")',
        call: async ({ principal }, id) => valueOf(await schema.fields(principal, String(id))),
      }),
      hostFunction({
        name: "fieldtypes",
        summary: "What a field may be",
        parameters: [],
        returns: "{varchar: {name, title, loption, fparam, btype}, …}",
        example: "OUTPUT = _.keys(odb.fieldtypes())",
        call: ({ principal }) => Promise.resolve(valueOf(schema.fieldTypes(principal))),
      }),
      hostFunction({
        name: "getclassid",
        summary: "The number of a class",
        parameters: [CLASS],
        returns: "number",
        example: 'OUTPUT = odb.getclassid("/matrix/consolelog/serverjs")',
        call: async ({ principal }, path) => (await schema.get(principal, path)).cid,
      }),
      hostFunction({
        name: "getid",
        summary: "The id that an insert of an object gives it: from its keys, or from its member id",
        parameters: [
          { name: "object", schema: Type.Object({}, { description: "With the path of its class as member class" }) },
        ],
        returns: "id, such as box:1",
        example: 'OUTPUT = odb.getid({ class: "/matrix/jobs/jobrun", runid: "1", host: "web-1" })',
        call: ({ principal }, object) => schema.idOf(principal, object as Row),
      }),
      hostFunction({
        name: "refresh",
        summary: "Does nothing, and is there for scripts that call it: classes are always read as they are",
        parameters: [],
        returns: "nothing",
        example: "odb.refresh()",
        call: () => Promise.resolve(undefined),
      }),
    ],
  };
}

function valueOf(records: object): Value {
  return records as Value;
}
