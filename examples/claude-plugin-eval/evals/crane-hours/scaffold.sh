printf 'Crane: Mon-Sat 6:00-20:00, Sun 8:00-12:00\n' > hours.txt
