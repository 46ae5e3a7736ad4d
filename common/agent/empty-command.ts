/**
 * Message of an agent that got a command without anything to do. A controller sends no such command, so the agent is older
 * than this kind of command. Agents in use say these words: do not change them.
 */
export const EMPTY_COMMAND = "The command has no id or nothing to do.";
