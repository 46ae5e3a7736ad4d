import { Type } from "typebox";
import type { Value } from "../../../common/value.ts";
import { hostFunction, type HostObject } from "../../scripting/index.ts";
import type { ConfigService } from "./service.ts";

const KEY = { name: "key", schema: Type.String({ description: "Key below the ospace" }) } as const;

/**
 * Script objects for the configuration, limited by the caller's rights. `etcd` is the same object under the name that
 * older scripts use. The service stores author and version of every change.
 */
export function configHostObjects(config: ConfigService): readonly HostObject[] {
  return [
    configHostObject(config, { name: "config", summary: "The configuration of the tenant" }),
    configHostObject(config, { name: "etcd", summary: "The configuration of the tenant, as config" }),
  ];
}

function configHostObject(
  config: ConfigService,
  { name: object, summary }: Pick<HostObject, "name" | "summary">,
): HostObject {
  return {
    name: object,
    summary,
    functions: [
      hostFunction({
        name: "get",
        summary: "An entry with everything below it",
        parameters: [KEY],
        returns: "the tree, as /config/get answers it",
        example: `${object}.set("/matrix/example", "1", 60); OUTPUT = ${object}.get("/matrix/example").value`,
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
        example: `${object}.set("/matrix/example", "1", 60)`,
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
        example: `${object}.set("/matrix/example", "1", 60); OUTPUT = ${object}.delete("/matrix/example")`,
        changes: true,
        call: ({ principal }, key) => config.remove(principal, key),
      }),
    ],
  };
}
