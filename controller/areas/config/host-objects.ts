import { Type } from "typebox";
import type { Value } from "../../../common/value.ts";
import { hostFunction, type HostObject } from "../../scripting/index.ts";
import type { ConfigService } from "./service.ts";

const KEY = { name: "key", schema: Type.String({ description: "Key below the ospace" }) } as const;

/** `config`: the configuration, shown by rights. Its service keeps author and versions of what is changed. */
export function configHostObject(config: ConfigService): HostObject {
  return {
    name: "config",
    summary: "The configuration of the tenant",
    functions: [
      hostFunction({
        name: "get",
        summary: "An entry with everything below it",
        parameters: [KEY],
        returns: "the tree, as /config/get answers it",
        example: 'config.set("/matrix/example", "1", 60); OUTPUT = config.get("/matrix/example").value',
        call: async ({ principal, signal }, key) => (await config.tree(principal, key, { signal })) as unknown as Value,
      }),
      hostFunction({
        name: "set",
        summary: "Sets an entry",
        parameters: [
          KEY,
          { name: "value", schema: Type.String({ description: "Its text" }) },
          {
            name: "ttl",
            schema: Type.Number({ description: "Seconds; 0 or absent: for ever" }),
            optional: true,
          },
        ],
        returns: "nothing",
        example: 'config.set("/matrix/example", "1", 60)',
        changes: true,
        call: async ({ principal }, key, value, ttl) => {
          await config.set(principal, { key, value, ttlSeconds: ttl });
          return undefined;
        },
      }),
      hostFunction({
        name: "delete",
        summary: "Deletes an entry with everything below it",
        parameters: [KEY],
        returns: "how many entries went",
        example: 'config.set("/matrix/example", "1", 60); OUTPUT = config.delete("/matrix/example")',
        changes: true,
        call: ({ principal }, key) => config.remove(principal, key),
      }),
    ],
  };
}
