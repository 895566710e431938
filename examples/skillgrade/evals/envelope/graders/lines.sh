# Prints the reward: four lines, the last in capital letters, and no phone number.
score=0
[ "$(wc -l < envelope.txt)" = 4 ] && score=0.5
[ "$(tail -n 1 envelope.txt)" = NORWAY ] && ! grep -q 55.12 envelope.txt && [ "$score" = 0.5 ] && score=1.0
printf '{"score": %s, "details": "lines and country"}\n' "$score"
