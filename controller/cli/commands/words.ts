import type { ArgumentDeclaration } from "../declared/declaration.ts";

/** Arguments that several commands have. */
export const HOST: ArgumentDeclaration = { name: "host", summary: "name of the host", completes: "hosts" };
export const POLICY: ArgumentDeclaration = { name: "policy", summary: "name of the policy", completes: "policies" };
export const JOB: ArgumentDeclaration = { name: "job", summary: "job as <name>@<folder>", completes: "jobs" };
export const DEPOT: ArgumentDeclaration = { name: "depot", summary: "name of the depot", completes: "depots" };
