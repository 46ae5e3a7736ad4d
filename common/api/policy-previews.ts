import { Type, type Static } from "typebox";
import { POLICY_PREVIEW_RECORDS_DEFAULT, RULE_TRIAL_MAX_LINES } from "../limits.ts";
import { having } from "./documented.ts";
import { CommandPolicyInput, LogPolicyInput } from "./policies.ts";
import { RuleTryReply } from "./rules.ts";

export const PolicyPreview = Type.Object(
  {
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: "Name of a saved policy" })),
    command: Type.Optional({ ...CommandPolicyInput, description: "Draft of a command policy" }),
    log: Type.Optional({ ...LogPolicyInput, description: "Draft of a log policy" }),
    host: Type.String({ minLength: 1, maxLength: 200, description: "Name of the host to read from" }),
    records: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: RULE_TRIAL_MAX_LINES,
        description: `Maximum number of records, ${POLICY_PREVIEW_RECORDS_DEFAULT} without it: the first of a command, the newest of a log`,
      }),
    ),
  },
  { documented: { anyOf: [having("name"), having("command"), having("log")] } },
);
export type PolicyPreview = Static<typeof PolicyPreview>;

export const PolicyPreviewReply = Type.Object({
  ...RuleTryReply.properties,
  state: Type.Union([Type.Literal("ended"), Type.Literal("enough"), Type.Literal("timeout")], {
    description:
      "ended: the command ended by itself, or the log was read. enough: the command was ended, because enough was read. timeout: it was ended at the deadline of the preview",
  }),
  code: Type.Optional(Type.Integer({ description: "Exit code; absent if the command was ended" })),
  errors: Type.String({ description: "End of the error output of the command" }),
  source: Type.String({ description: "command, or the path of the log file; empty: no file matches" }),
});
