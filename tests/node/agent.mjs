// An agent: calls tools until the model has nothing more to call, then prints the calls and the last word, as JSON.
// usage: node agent.mjs BASE_URL PROMPT TOOLS_JSON stream|whole
import OpenAI from "openai";

const [baseURL, prompt, tools, way] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const messages = [{ role: "user", content: prompt }];
const calls = [];
for (;;) {
  const request = { model: "scripted", messages, tools: JSON.parse(tools) };
  const completion =
    way === "stream"
      ? await client.chat.completions.stream(request).finalChatCompletion()
      : await client.chat.completions.create(request);
  const message = completion.choices[0].message;
  messages.push(message);
  if (!message.tool_calls?.length) {
    console.log(JSON.stringify({ calls, last: message.content }));
    break;
  }
  for (const call of message.tool_calls) {
    calls.push([call.function.name, JSON.parse(call.function.arguments)]);
    messages.push({ role: "tool", tool_call_id: call.id, content: "d\u00e9cor" });
  }
}
