// The copy button of a block of commands copies the commands: no prompt, no output. A command begins with "$ ", and goes
// on in the next line after a backslash.
const commands = text =>
  text
    .split(/^\$ /m)
    .slice(1)
    .map(part => part.match(/^(?:.*\\\n)*.*/)[0])
    .join("\n")

for (const code of document.querySelectorAll(".language-console code")) {
  code.dataset.copy = commands(code.textContent)
}
