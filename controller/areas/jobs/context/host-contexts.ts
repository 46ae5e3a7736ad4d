import { Type } from "typebox";
import { hostFunction, type HostFunction } from "../../../scripting/index.ts";
import type { JobContexts } from "./contexts.ts";

const SID = { name: "sid", schema: Type.String({ description: "Id of the context" }) } as const;
const NAME = { name: "name", schema: Type.String({ description: "Name of the value" }) } as const;
const MADE = 'job.setcontext("M202601010000:1", "step", "two", 60); ';

/** Functions of scripts for the context of a run. */
export function contextFunctions(contexts: JobContexts): readonly HostFunction[] {
  return [
    hostFunction({
      name: "getcontext",
      summary: "Values of a context by name",
      parameters: [
        SID,
        { name: "prefix", schema: Type.String({ description: "Only names that begin so" }), optional: true },
      ],
      returns: "{name: value, …}",
      example: `${MADE}OUTPUT = job.getcontext("M202601010000:1").step`,
      call: ({ principal }, sid, prefix) => contexts.read(principal, sid, prefix),
    }),
    hostFunction({
      name: "setcontext",
      summary: "Sets one value of a context, which needs no making",
      parameters: [
        SID,
        NAME,
        { name: "value", schema: Type.String({ description: "Its text" }) },
        {
          name: "ttl",
          schema: Type.Integer({ minimum: 0, description: "Seconds; 0 or absent: for ever" }),
          optional: true,
        },
      ],
      returns: "nothing",
      example: MADE.trim(),
      changes: true,
      call: async ({ principal }, ...[sid, name, value, ttlSeconds]) => {
        await contexts.set(principal, sid, { name, value, ...(ttlSeconds !== undefined && { ttlSeconds }) });
        return undefined;
      },
    }),
    hostFunction({
      name: "deletecontext",
      summary: "Removes one value of a context, or all of them",
      parameters: [SID, { ...NAME, optional: true }],
      returns: "nothing",
      example: `${MADE}job.deletecontext("M202601010000:1", "step"); job.deletecontext("M202601010000:1")`,
      changes: true,
      call: async ({ principal }, sid, name) => {
        if (name === undefined) await contexts.clear(principal, sid);
        else await contexts.remove(principal, sid, name);
        return undefined;
      },
    }),
  ];
}
