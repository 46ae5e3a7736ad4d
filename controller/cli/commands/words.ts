import type { ArgumentDeclaration, FlagDeclaration } from "../declared/declaration.ts";

/** Arguments that several commands have. */
export const HOST: ArgumentDeclaration = { name: "host", summary: "name of the host", completes: "hosts" };
export const POLICY: ArgumentDeclaration = { name: "policy", summary: "name of the policy", completes: "policies" };
export const JOB: ArgumentDeclaration = { name: "job", summary: "job as <name>@<folder>", completes: "jobs" };
export const DEPOT: ArgumentDeclaration = { name: "depot", summary: "name of the depot", completes: "depots" };
export const CLASS: ArgumentDeclaration = { name: "class", summary: "path of the class", completes: "classes" };
export const RULE: ArgumentDeclaration = {
  name: "rule",
  summary: "key of the rule, such as /matrix/rules/access",
  completes: "rules",
};

/** Options of the commands that set a password, which is never an argument. */
export const PASSWORD_STDIN: FlagDeclaration = {
  name: "password-stdin",
  summary: "read the password from the standard input, without a question",
};
