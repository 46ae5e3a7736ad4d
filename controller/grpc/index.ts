export { AgentServer, type AgentServerDependencies } from "./server.ts";
export type { IssuedServerCertificate } from "./server-certificate.ts";
