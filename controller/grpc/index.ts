export { AgentServer } from "./server.ts";
